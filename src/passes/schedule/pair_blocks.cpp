#include "passes/schedule/pair_blocks.h"

#include "analysis/shared_tiles.h"
#include "ir/cluster.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/schedules.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kPair = 2, kBoth = 3;  // blocks; the bits of both

}  // namespace

Ending pair_blocks(TileProgram& p, Launch& launch, const plan::Use& use) {
  std::string why;
  const auto shared = analysis::shared_tile(p, launch, p.buffer(use.tile).name, why);
  check_internal(shared && shared->tile == use.tile, "a plan of pairs that cannot be: {}", why);
  const size_t d = shared->dim;
  // Who has ended has no mbarriers at which the other block could still arrive.
  Ending together{.together = true};
  launch.cluster.assign(launch.grid.size(), 1);
  launch.cluster[d] = kPair;
  const Expr extent = launch.grid[d];
  if (const auto known = constant_int(extent); known && *known % kPair == 0) return together;
  const Expr pair = constant(extent->type, kPair);
  launch.grid[d] = mul(ceildiv(extent, pair), pair);
  const Expr exists = binary(BinaryOp::Lt, cast(var(launch.block[d], i32), extent->type), extent);
  for (Stmt& s : launch.body)
    if (analysis::writes_memory(p, s)) s = make_stmt(If{exists, {s}, {}}, s->location);
  return together;
}

Copy half_for_both(const Copy& copy, const Launch& launch) {
  Copy half = copy;
  half.multicast = kBoth;
  const Expr rank = rank_in_cluster(launch);
  const auto cut = [&](Region& r, size_t dim) {
    const int64_t rows = constant_int(r.extent[dim]).value_or(0) / kPair;
    r.extent[dim] = constant(r.extent[dim]->type, rows);
    r.min[dim] = add(r.min[dim], cast(mul(rank, constant(i32, rows)), r.min[dim]->type));
  };
  // Rows lie along one dimension of the tensor: the others before its last have one element.
  size_t rows = half.from.extent.size() - 1;
  for (size_t d = 0; d + 1 < half.from.extent.size(); ++d)
    if (constant_int(half.from.extent[d]) != 1) rows = d;
  check_internal(rows + 1 < half.from.extent.size(), "a tile without rows is shared");
  cut(half.from, rows), cut(half.to, half.to.extent.size() - 2);
  return half;
}

Expr other_block(const Launch& launch) {
  return binary(BinaryOp::BitXor, rank_in_cluster(launch), constant(i32, int64_t{1}));
}

}  // namespace tilewright::passes
