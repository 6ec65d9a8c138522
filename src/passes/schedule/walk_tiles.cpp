#include "passes/schedule/walk_tiles.h"

#include "ir/cluster.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower/block_index.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kPanel = 16;  // rows of tiles that blocks walk together (measured: 4 to 16 within 2%)

}  // namespace

// Tiles of one product share rows and columns of the operands; of others we do not know.
Launch with_order(Launch launch) {
  int gemms = 0;
  walk(launch.body, [&](const Stmt& s) { gemms += s.as<Gemm>() ? 1 : 0; });
  if (launch.swizzle.panel == 0 && launch.grid.size() == 2 && gemms == 1)
    launch.swizzle.panel = kPanel / cluster_extent(launch, 1);
  return launch;
}

bool walk_tiles(TileProgram& p, Launch& launch, int64_t most, bool uneven) {
  Expr tiles = blocks_of(launch);
  const auto all = constant_int(tiles);
  if (all && *all <= most) return false;
  const DType type = blocks_are_few(launch, p) ? i32 : i64;
  tiles = cast(tiles, type);
  // Blocks of a cluster walk together: it takes tiles that are neighbours, in the order of its blocks.
  const int64_t together = cluster_blocks(launch);
  const Expr blocks = constant(type, most), each = constant(type, together);
  const auto whole = [&](const Expr& n) { return together == 1 ? n : mul(ceildiv(n, each), each); };
  // As few blocks as make no more waves; of no tiles, none.
  const Expr one = constant(type, int64_t{1}), two = constant(type, int64_t{2});
  const Expr blocks_walking = whole(ceildiv(tiles, binary(BinaryOp::Max, ceildiv(tiles, blocks), one)));
  Body names;
  auto named = [&](const char* name, const Expr& value) {
    if (is_constant(value)) return value;
    const VarId id = p.new_var(name, type);
    names.push_back(make_stmt(Let{id, value}, launch.location));
    return var(id, type);
  };
  tiles = named("tiles", tiles);
  const Expr grid = named("blocks", whole(ceildiv(tiles, ceildiv(tiles, blocks))));
  const VarId block = p.new_var("block", i32), turn = p.new_var("turn", i32), tile = p.new_var("tile", type);
  const Expr first = cast(var(block, i32), type);
  For loop;
  loop.var = turn;
  loop.begin = constant(i32, int64_t{0});
  const Expr at = cast(var(turn, i32), type);
  // The place of the block in a wave.
  auto place = [&](const Expr& wave) {
    const Expr odd = binary(BinaryOp::Eq, binary(BinaryOp::FloorMod, wave, two), one);
    if (!uneven) return first;
    if (together == 1) return select(odd, sub(sub(grid, one), first), first);
    const Expr rank = binary(BinaryOp::FloorMod, first, each);
    return select(odd, add(sub(sub(grid, each), sub(first, rank)), rank), first);
  };
  const Expr last = named("last_wave", sub(ceildiv(tiles, grid), one));  // it may not be whole
  const Expr in_last = binary(BinaryOp::Lt, place(last), sub(tiles, mul(last, grid)));
  loop.extent = cast(select(in_last, add(last, one), last), i32);
  loop.body.push_back(make_stmt(Let{tile, add(place(at), mul(at, grid))}, launch.location));
  const Launch ordered = with_order(launch);
  static const target::CpuTarget no_cpu;
  Lowering l{p, ordered, no_cpu};
  l.at = launch.location;
  for (Stmt& s : bind_block(ordered, var(tile, type), l)) loop.body.push_back(std::move(s));
  loop.body.insert(loop.body.end(), launch.body.begin(), launch.body.end());
  launch.body = std::move(names);
  launch.body.push_back(make_stmt(std::move(loop), launch.location));
  launch.grid = {blocks_walking}, launch.block = {block}, launch.swizzle = {};
  if (together > 1) launch.cluster = {together};
  return true;
}

}  // namespace tilewright::passes
