#include "passes/schedule/walk_tiles.h"

#include <array>

#include "analysis/uneven_along.h"
#include "analysis/waiting_blocks.h"
#include "ir/cluster.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower/block_index.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The extents of the result's tile along x and y of the grid, if it leaves by one copy.
std::optional<std::array<int64_t, 2>> tile_of(const Launch& launch) {
  std::optional<std::array<int64_t, 2>> found;
  walk(launch.body, [&](const Stmt& s) {
    const auto* n = s.as<Copy>();
    if (!n || found) return;
    std::array<int64_t, 2> tile{};
    for (size_t d = 0; d < n->to.min.size(); ++d)
      for (size_t along = 0; along < 2; ++along)
        if (used_vars(n->to.min[d]).contains(launch.block[along]))
          tile[along] = constant_int(n->to.extent[d]).value_or(0);
    if (tile[0] > 0 && tile[1] > 0) found = tile;
  });
  return found;
}

// Blocks that are neighbours share the operand of which a tile has more, in panels of so many tiles. On an H100
// (bench/results/2026-11-25-orders.json), us by panels of 16 rows and by these: 8192 cubed in 256x64 2833, 1889; 6144
// cubed in 256x32 2250, 1120, in 192x64 1139, 897; 4096 cubed in 128x64 380, 291, in 128x128 206, 184, in 256x128 187,
// 181. Tiles of more columns than rows do not mind: 64x128, 128x208, 128x224 and 128x256 within 1%.
ir::Swizzle order_of(const std::optional<std::array<int64_t, 2>>& tile) {
  if (tile && (*tile)[1] > (*tile)[0]) return {4, RasterOrder::Column};
  return {tile && (*tile)[1] == (*tile)[0] ? 8 : 16, RasterOrder::Row};
}

// Tiles that take longer the further they lie along a dimension of the grid, dealt in pairs that all take about as
// long: a tile and its mirror along that dimension, of tiles that are alike in it. Blocks take a pair each,
// then one of the next wave; of what is left behind whole waves each takes one tile, if that is enough. By the turns of
// causal attention with 8 to 128 heads and 500 to 17,000 positions the block that has most has 1.05 times the mean (in
// the median; 1.11 where every second wave is dealt backwards, which is even only where waves are whole rows of the
// grid).
class Pairs {
 public:
  Pairs(TileProgram& p, const Launch& own, size_t along, const FewBlocks& few)
      : p_(p), own_(own), along_(along), few_(few), type_(few.tiles->type), extent_(cast(own.grid[along], type_)) {
    alike_ = number(1);
    for (size_t d = 0; d < own.grid.size(); ++d)
      if (d != along) alike_ = mul(alike_, cast(own.grid[d], type_));
    const Expr of_wave = mul(few.blocks, number(2));
    in_pairs_ = named("in_pairs", mul(binary(BinaryOp::FloorDiv, few.tiles, of_wave), number(2)));
    const Expr left = sub(few.tiles, mul(in_pairs_, few.blocks));
    const Expr some = binary(BinaryOp::Lt, number(0), left);
    single_ = named("single", number_of(logical_and(some, binary(BinaryOp::Le, left, few.blocks))));
    // Of an odd number of tiles the last is its own mirror: first comes who has it, then who has a pair.
    const Expr first = select(is(single_), left, ceildiv(left, number(2)));
    const Expr second = select(is(single_), number(0), binary(BinaryOp::FloorDiv, left, number(2)));
    const auto takes = [&](const Expr& of) { return number_of(binary(BinaryOp::Lt, few.block, of)); };
    turns = cast(named("turns", add(in_pairs_, add(takes(first), takes(second)))), i32);
  }
  Expr turns;  // of the block

  // Names for the coordinates of the tile of that turn.
  Body tile(const Expr& turn) {
    const Expr two = number(2), last = logical_and(is(single_), binary(BinaryOp::Le, in_pairs_, turn));
    const Expr of_block = mul(binary(BinaryOp::FloorDiv, turn, two), few_.blocks);
    const Expr second = named("second", binary(BinaryOp::FloorMod, select(last, few_.block, turn), two));
    const Expr pair =
        named("pair", add(of_block, select(last, binary(BinaryOp::FloorDiv, few_.block, two), few_.block)));
    const Expr row = named("row", binary(BinaryOp::FloorDiv, pair, extent_)), at = sub(pair, mul(row, extent_));
    const Expr mirrored = select(is(second), sub(sub(extent_, number(1)), at), at);
    const VarId along = own_.block[along_];
    emit(Let{along, cast(mirrored, p_.var(along).type)});
    Launch others = own_;
    others.swizzle = {};
    const auto d = static_cast<std::ptrdiff_t>(along_);
    others.grid.erase(others.grid.begin() + d), others.block.erase(others.block.begin() + d);
    // Rows are paired from both ends: neighbours, which may share what they read, are taken at a time, and of an odd
    // number the last is paired with itself.
    const Expr number_of_row = select(is(second), sub(sub(alike_, number(1)), row), row);
    if (!others.grid.empty())
      for (Stmt& s : bind_tile(p_, others, named("others", number_of_row), true)) out_.push_back(std::move(s));
    return std::exchange(out_, {});
  }
  Body names() { return std::exchange(out_, {}); }

 private:
  Expr number(int64_t value) const { return constant(type_, value); }
  Expr is(const Expr& n) const { return binary(BinaryOp::Eq, n, number(1)); }
  Expr number_of(const Expr& condition) const { return select(condition, number(1), number(0)); }
  template <class T>
  void emit(T op) {
    out_.push_back(make_stmt(std::move(op), own_.location));
  }
  Expr named(const char* name, const Expr& value) {
    if (is_constant(value)) return value;
    const VarId id = p_.new_var(name, value->type);
    emit(Let{id, value});
    return var(id, value->type);
  }

  TileProgram& p_;
  const Launch& own_;
  const size_t along_;
  const FewBlocks& few_;
  const DType type_;
  const Expr extent_;
  Expr alike_, in_pairs_, single_;
  Body out_;
};

}  // namespace

// Tiles of one product share rows and columns of the operands; of others we do not know. Blocks that wait for others
// keep the program's order: those for which they wait may have begun before them alone.
Launch with_order(const ProgramTables& p, Launch launch) {
  int gemms = 0;
  walk(launch.body, [&](const Stmt& s) { gemms += s.as<Gemm>() ? 1 : 0; });
  if (launch.swizzle.panel > 0 || launch.grid.size() != 2 || gemms != 1) return launch;
  if (analysis::blocks_that_wait(p, launch) > 1) return launch;
  // Of clusters panels of rows have been measured.
  launch.swizzle = cluster_blocks(launch) > 1 ? ir::Swizzle{16, RasterOrder::Row} : order_of(tile_of(launch));
  launch.swizzle.panel /= cluster_extent(launch, 1);
  return launch;
}

Body bind_tile(TileProgram& p, const Launch& launch, const Expr& tile, bool inside) {
  if (inside && launch.grid.size() == 1 && cluster_blocks(launch) == 1)
    return {make_stmt(Let{launch.block[0], cast(tile, p.var(launch.block[0]).type)}, launch.location)};
  const Launch ordered = with_order(p, launch);
  static const target::CpuTarget no_cpu;
  Lowering l{p, ordered, no_cpu};
  l.number = static_cast<int32_t>(p.launches.size());
  l.at = launch.location;
  return bind_block(ordered, tile, l);
}

std::optional<FewBlocks> with_few_blocks(TileProgram& p, Launch& launch, int64_t most, bool even) {
  FewBlocks out;
  out.tiles = blocks_of(launch);
  const auto all = constant_int(out.tiles);
  if (all && *all <= most) return std::nullopt;
  // A dimension of a grid fits its type.
  const bool one = launch.grid.size() == 1 && launch.grid[0]->type == i32;
  const DType type = blocks_are_few(launch, p) || (one && !even) ? i32 : i64;
  out.tiles = cast(one ? launch.grid[0] : out.tiles, type);
  // Blocks of a cluster walk together: it takes tiles that are neighbours, in the order of its blocks.
  const int64_t together = cluster_blocks(launch);
  const Expr blocks = constant(type, most), each = constant(type, together);
  const auto whole = [&](const Expr& n) { return together == 1 ? n : mul(ceildiv(n, each), each); };
  const auto some = [&](const Expr& tiles, const Expr& waves) {
    return even ? whole(ceildiv(tiles, waves)) : binary(BinaryOp::Min, tiles, blocks);
  };
  // Of no tiles, none.
  const Expr walking = some(out.tiles, binary(BinaryOp::Max, ceildiv(out.tiles, blocks), constant(type, int64_t{1})));
  const auto named = [&](const char* name, const Expr& value) {
    if (is_constant(value)) return value;
    const VarId id = p.new_var(name, type);
    out.names.push_back(make_stmt(Let{id, value}, launch.location));
    return var(id, type);
  };
  out.tiles = named("tiles", out.tiles);
  out.blocks = named("blocks", some(out.tiles, ceildiv(out.tiles, blocks)));
  const VarId block = p.new_var("block", i32);
  out.block = cast(var(block, i32), type);
  launch.grid = {none_in_part_of_a_cluster(launch, walking)}, launch.block = {block}, launch.swizzle = {};
  if (together > 1) launch.cluster = {together};
  return out;
}

bool walk_tiles(TileProgram& p, Launch& launch, int64_t most, bool uneven) {
  const Launch own = launch;
  const auto along = uneven && cluster_blocks(launch) == 1 && !reorders_blocks(launch) ? analysis::uneven_along(launch)
                                                                                       : std::optional<size_t>();
  auto few = with_few_blocks(p, launch, most, true);
  if (!few) return false;
  const Expr tiles = few->tiles, grid = few->blocks, first = few->block;
  const DType type = tiles->type;
  const int64_t together = cluster_blocks(launch);
  const Expr each = constant(type, together), one = constant(type, int64_t{1}), two = constant(type, int64_t{2});
  const VarId turn = p.new_var("turn", i32), tile = p.new_var("tile", type);
  For loop;
  loop.kind = LoopKind::Grid;
  loop.var = turn;
  loop.begin = constant(i32, int64_t{0});
  const Expr at = cast(var(turn, i32), type);
  if (along) {
    Pairs pairs(p, own, *along, *few);
    loop.extent = pairs.turns;
    for (Stmt& s : pairs.names()) few->names.push_back(std::move(s));
    loop.body = pairs.tile(at);
    loop.body.insert(loop.body.end(), own.body.begin(), own.body.end());
    launch.body = std::move(few->names);
    launch.body.push_back(make_stmt(std::move(loop), launch.location));
    return true;
  }
  // The place of the block in a wave.
  auto place = [&](const Expr& wave) {
    const Expr odd = binary(BinaryOp::Eq, binary(BinaryOp::FloorMod, wave, two), one);
    if (!uneven) return first;
    if (together == 1) return select(odd, sub(sub(grid, one), first), first);
    const Expr rank = binary(BinaryOp::FloorMod, first, each);
    return select(odd, add(sub(sub(grid, each), sub(first, rank)), rank), first);
  };
  Expr last = sub(ceildiv(tiles, grid), one);  // it may not be whole
  if (!is_constant(last)) {
    const VarId id = p.new_var("last_wave", type);
    few->names.push_back(make_stmt(Let{id, last}, launch.location));
    last = var(id, type);
  }
  const Expr in_last = binary(BinaryOp::Lt, place(last), sub(tiles, mul(last, grid)));
  loop.extent = cast(select(in_last, add(last, one), last), i32);
  loop.body.push_back(make_stmt(Let{tile, add(place(at), mul(at, grid))}, launch.location));
  for (Stmt& s : bind_tile(p, own, var(tile, type))) loop.body.push_back(std::move(s));
  loop.body.insert(loop.body.end(), own.body.begin(), own.body.end());
  launch.body = std::move(few->names);
  launch.body.push_back(make_stmt(std::move(loop), launch.location));
  return true;
}

}  // namespace tilewright::passes
