#include "ir/cluster.h"

#include <algorithm>

#include "ir/effects.h"
#include "ir/operators.h"

namespace tilewright::ir {

int64_t cluster_extent(const Launch& launch, size_t dim) {
  return dim < launch.cluster.size() ? launch.cluster[dim] : 1;
}

int64_t cluster_blocks(const Launch& launch) {
  int64_t blocks = 1;
  for (const int64_t c : launch.cluster) blocks *= c;
  return blocks;
}

Expr rank_in_cluster(const Launch& launch) {
  Expr rank = constant(i32, int64_t{0});
  for (size_t d = launch.block.size(); d-- > 0;) {
    const Expr extent = constant(i32, cluster_extent(launch, d));
    rank = add(mul(rank, extent), binary(BinaryOp::FloorMod, var(launch.block[d], i32), extent));
  }
  return rank;
}

bool is_to_peer(const ProgramTables& program, const Copy& copy) {
  return static_cast<bool>(program.buffer(copy.to.buffer).cta);
}

bool is_same_tile(const ProgramTables& program, const Buffer& view) {
  if (!view.cta || view.offset) return false;
  const Buffer& root = program.buffer(view.root);
  const auto are_equal = [](const std::vector<Expr>& a, const std::vector<Expr>& b) {
    return std::ranges::equal(a, b, [](const Expr& x, const Expr& y) { return equal(x, y); });
  };
  return view.type == root.type && are_equal(view.shape, root.shape) && are_equal(view.strides, root.strides);
}

bool reaches_blocks(const ProgramTables& program, const Stmt& s) {
  for (const Effect& e : own_effects_of(s).list)
    if (e.region.valid() && program.buffer(e.region.buffer).cta) return true;
  const auto* arrive = s.as<Arrive>();
  const auto* expect = s.as<Expect>();
  const auto* copy = s.as<Copy>();
  const auto* sync = s.as<Sync>();
  return (arrive && arrive->cta) || (expect && expect->cta) || (copy && copy->multicast != 0) ||
         (sync && sync->scope == SyncScope::Cluster);
}

}  // namespace tilewright::ir
