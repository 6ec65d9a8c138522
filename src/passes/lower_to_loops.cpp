#include "passes/lower_to_loops.h"

#include "passes/lower/layouts.h"
#include "passes/lower/threads.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

LoopProgram tables_of(const TileProgram& p) {
  LoopProgram out;
  out.name = p.name, out.params = p.params, out.symbols = p.symbols, out.assumptions = p.assumptions;
  out.vars = p.vars, out.buffers = p.buffers, out.locations = p.locations, out.options = p.options;
  return out;
}

// Binds the block variables from the linear index of the block.
class BlockIndex {
 public:
  BlockIndex(const Launch& launch, const Expr& block, Lowering& l) : launch_(launch), l_(l) {
    for (const Expr& e : launch.grid) grid_.push_back(widen(e));
    const Expr gx = grid_[0], gy = grid_.size() > 1 ? grid_[1] : wide(1);
    Expr x = binary(BinaryOp::FloorMod, block, gx), y = binary(BinaryOp::FloorDiv, block, gx);
    Expr z;
    if (grid_.size() > 2) {
      z = binary(BinaryOp::FloorDiv, y, gy);
      y = binary(BinaryOp::FloorMod, y, gy);
    }
    if (grid_.size() > 1 && launch.swizzle.panel > 0) swizzle(x, y);
    const Expr index[] = {x, y, z};
    for (size_t d = 0; d < launch.block.size(); ++d) {
      const VarId v = launch.block[d];
      out.push_back(l.make(Let{v, cast(index[d], l.program.var(v).type)}));
      const Interval extent = l.intervals.of(grid_[d]);
      l.intervals.set(v, {0, extent.high < kUnbounded ? std::max<int64_t>(extent.high - 1, 0) : INT32_MAX});
      // What a loop bound says and an interval cannot: v < extent.
      l.intervals.assume(binary(BinaryOp::Lt, widen(var(v, l.program.var(v).type)), grid_[d]));
    }
  }
  Body out;

 private:
  Expr bind_value(const char* name, const Expr& value) {
    if (is_constant(value)) return value;
    const VarId id = l_.program.new_var(name, i64);
    out.push_back(l_.make(Let{id, value}));
    return var(id, i64);
  }
  // Panels of `panel` rows of blocks; within one, columns are walked up and down, the direction changing from panel to
  // panel; a last panel that is not full uses its own height.
  void swizzle(Expr& x, Expr& y) {
    const bool by_rows = launch_.swizzle.order == RasterOrder::Row;
    const Expr rows = by_rows ? grid_[1] : grid_[0], columns = by_rows ? grid_[0] : grid_[1];
    const Expr linear = add(x, mul(y, grid_[0])), panel = wide(launch_.swizzle.panel);
    const Expr whole = bind_value("panel_blocks", mul(panel, columns));
    const Expr number = bind_value("panel", binary(BinaryOp::FloorDiv, linear, whole));
    const Expr inside = bind_value("in_panel", binary(BinaryOp::FloorMod, linear, whole));
    const Expr first = mul(number, panel);
    const Expr height = bind_value("panel_height", minimum(panel, sub(rows, first)));
    const Expr step = bind_value("panel_column", binary(BinaryOp::FloorDiv, inside, height));
    const Expr odd = binary(BinaryOp::Eq, binary(BinaryOp::FloorMod, number, wide(2)), wide(1));
    const Expr column = select(odd, sub(sub(columns, wide(1)), step), step);
    const Expr row = add(first, binary(BinaryOp::FloorMod, inside, height));
    x = by_rows ? column : row;
    y = by_rows ? row : column;
  }
  const Launch& launch_;
  Lowering& l_;
  std::vector<Expr> grid_;
};

// Local buffers whose values all threads agree on: one scalar of the block will do.
std::set<BufferId> uniform_locals(const TileProgram& p, const Launch& launch, const analysis::Uniformity& u,
                                  int32_t number) {
  std::set<BufferId> out;
  for (uint32_t i = 0; i < p.buffers.size(); ++i) {
    const Buffer& b = p.buffers[i];
    if (b.space != Space::Local || b.is_view() || b.launch != number || launch.body.empty()) continue;
    const std::vector<Expr> zero(b.rank(), constant(0));
    if (u.is_uniform(load({i}, zero, b.type), launch.body.front())) out.insert({i});
  }
  return out;
}

Launch lower_launch(const TileProgram& p, const Launch& launch, int32_t number, LoopProgram& out,
                    const target::CpuTarget& target) {
  int64_t cluster = 1;
  for (int64_t c : launch.cluster) cluster *= c;
  if (cluster > 1)
    fail(Code::CpuCluster, p.location(launch.location), "clusters of blocks are not something the CPU engine runs",
         "run it on the interpreter: compile(program, {.engine = Engine::Interpreter})");
  const analysis::Uniformity uniformity(p, launch);
  Lowering l{out, launch, target};
  l.at = launch.location, l.user_buffers = p.buffers.size();
  Expr blocks = wide(1);
  for (const Expr& e : launch.grid) blocks = mul(blocks, widen(e));
  const Expr block = l.index("block", blocks);
  BlockIndex index(launch, block, l);
  const std::set<BufferId> uniform = uniform_locals(p, launch, uniformity, number);
  choose_tiles(l);
  Body body = place_tiles(privatize(lower_block(uniformity, l), uniform, l), l);
  for (size_t i = 0; i < out.buffers.size(); ++i) {
    Buffer& b = out.buffers[i];
    if (b.launch != number) continue;
    if (b.space == Space::Fragment && (i < l.user_buffers || b.is_view())) b.space = Space::Shared;
    b.reducer.reset();  // its atomics are plain updates of the block's memory
    if (uniform.contains(out.root({static_cast<uint32_t>(i)})))
      b.space = b.rank() == 0 ? Space::Fragment : Space::Shared;
  }
  body.insert(body.begin(), index.out.begin(), index.out.end());
  Launch result = launch;
  result.body = {loop(l, block, wide(0), blocks, std::move(body), LoopKind::Grid)};
  return result;
}

}  // namespace

LoopProgram lower_to_loops(const TileProgram& program, const target::CpuTarget& target) {
  LoopProgram out = tables_of(program);
  for (size_t i = 0; i < program.launches.size(); ++i)
    out.launches.push_back(lower_launch(program, program.launches[i], static_cast<int32_t>(i), out, target));
  return out;
}

}  // namespace tilewright::passes
