#include "passes/lower/block_index.h"

#include "analysis/divisibility.h"
#include "ir/cluster.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What is left of the grid's extent by clusters along it; 0 where it is known that nothing is.
Expr left_by_clusters(const Launch& launch, size_t d) {
  const Expr& extent = launch.grid[d];
  const int64_t blocks = cluster_extent(launch, d);
  if (analysis::power_of_two_divisor(extent) % blocks == 0) return constant(extent->type, int64_t{0});
  return binary(BinaryOp::FloorMod, extent, constant(extent->type, blocks));
}

class BlockIndex {
 public:
  BlockIndex(const Launch& launch, Expr block, Lowering& l) : launch_(launch), l_(l), type_(block->type) {
    const int64_t together = cluster_blocks(launch);
    for (size_t d = 0; d < launch.grid.size(); ++d) {
      const Expr e = cast(launch.grid[d], type_);
      const int64_t extent = cluster_extent(launch, d);
      grid_.push_back(extent > 1 ? binary(BinaryOp::FloorDiv, e, number(extent)) : e);
    }
    Expr rank = binary(BinaryOp::FloorMod, block, number(together));
    if (together > 1) block = binary(BinaryOp::FloorDiv, block, number(together));
    const Expr gx = grid_[0], gy = grid_.size() > 1 ? grid_[1] : number(1);
    Expr x = binary(BinaryOp::FloorMod, block, gx), y = binary(BinaryOp::FloorDiv, block, gx);
    Expr z;
    if (grid_.size() > 2) {
      z = binary(BinaryOp::FloorDiv, y, gy);
      y = binary(BinaryOp::FloorMod, y, gy);
    }
    if (reorders_blocks(launch)) swizzle(grid_.size() == 2 ? block : add(x, mul(y, gx)), x, y);
    Expr index[] = {x, y, z};
    for (size_t d = 0; d < launch.block.size(); ++d) {
      if (const int64_t extent = cluster_extent(launch, d); extent > 1) {
        index[d] = add(mul(index[d], number(extent)), binary(BinaryOp::FloorMod, rank, number(extent)));
        rank = binary(BinaryOp::FloorDiv, rank, number(extent));
      }
      const VarId v = launch.block[d];
      out.push_back(l.make(Let{v, cast(index[d], l.program.var(v).type)}));
      for (const Expr& e : {cast(launch.grid[d], type_), launch.grid[d]})
        l.intervals.count(v, l.program.var(v).type, e);
    }
  }
  Body out;

 private:
  Expr number(int64_t value) const { return constant(type_, value); }
  Expr bind_value(const char* name, const Expr& value) {
    if (is_constant(value)) return value;
    const VarId id = l_.program.new_var(name, type_);
    out.push_back(l_.make(Let{id, value}));
    return var(id, type_);
  }
  // Panels of `panel` rows of blocks; within one, columns are walked up and down, the direction changing from panel to
  // panel; a last panel that is not full uses its own height.
  void swizzle(const Expr& linear, Expr& x, Expr& y) {
    const bool by_rows = launch_.swizzle.order == RasterOrder::Row;
    const Expr rows = by_rows ? grid_[1] : grid_[0], columns = by_rows ? grid_[0] : grid_[1];
    const Expr panel = number(launch_.swizzle.panel);
    const Expr whole = bind_value("panel_blocks", mul(panel, columns));
    const Expr panel_number = bind_value("panel", binary(BinaryOp::FloorDiv, linear, whole));
    const Expr inside = bind_value("in_panel", binary(BinaryOp::FloorMod, linear, whole));
    const Expr first = mul(panel_number, panel);
    const Expr height = bind_value("panel_height", binary(BinaryOp::Min, panel, sub(rows, first)));
    const Expr step = bind_value("panel_column", binary(BinaryOp::FloorDiv, inside, height));
    const Expr odd = binary(BinaryOp::Eq, binary(BinaryOp::FloorMod, panel_number, number(2)), number(1));
    const Expr column = select(odd, sub(sub(columns, number(1)), step), step);
    const Expr row = add(first, binary(BinaryOp::FloorMod, inside, height));
    x = by_rows ? column : row;
    y = by_rows ? row : column;
  }
  const Launch& launch_;
  Lowering& l_;
  const DType type_;
  std::vector<Expr> grid_;
};

}  // namespace

bool reorders_blocks(const Launch& launch) {
  return launch.swizzle.panel > 0 && launch.grid.size() > 1 && constant_int(launch.grid[0]) != 1 &&
         constant_int(launch.grid[1]) != 1;
}

bool has_whole_clusters(const Launch& launch) {
  for (size_t d = 0; d < launch.grid.size(); ++d)
    if (constant_int(left_by_clusters(launch, d)) != 0) return false;
  return true;
}

Expr none_in_part_of_a_cluster(const Launch& launch, Expr blocks) {
  for (size_t d = 0; d < launch.grid.size(); ++d) {
    const Expr left = left_by_clusters(launch, d);
    const Expr whole = binary(BinaryOp::Eq, left, constant(left->type, int64_t{0}));
    blocks = select(whole, blocks, cast(launch.grid[d], blocks->type));
  }
  return blocks;
}

Body bind_block(const Launch& launch, const Expr& block, Lowering& l) { return BlockIndex(launch, block, l).out; }

}  // namespace tilewright::passes
