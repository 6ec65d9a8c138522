// What the lowerings of single ops share: the tables they extend, the facts they prove with, and small makers of loops.
#pragma once
#include <map>

#include "analysis/uniformity.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/widen.h"
#include "passes/lower/intervals.h"
#include "target/cpu.h"

namespace tilewright::passes {

// Nests of loops whose iterations run on threads of the block: a Map's points, or a loop over the threads. Where one of
// two nests runs, as they go through the same points with and without checks, both are the same box.
struct ThreadBoxes {
  std::map<ir::VarId, size_t> of;  // every loop variable: its nest
  std::vector<ir::Expr> thread;    // by nest: the linear index of the thread that runs the iteration
  std::vector<size_t> box;         // by nest: the number of the box
  size_t add(const ir::Expr& linear_thread) { return add(linear_thread, thread.size()); }
  size_t add(const ir::Expr& linear_thread, size_t box_number) {
    thread.push_back(linear_thread), box.push_back(box_number);
    return thread.size() - 1;
  }
};

struct Lowering {
  ir::ProgramTables& program;
  const ir::Launch& launch;  // of the tile program
  const target::CpuTarget& target;
  Intervals intervals = {};
  ir::LocationId at = {};  // of the statement being lowered
  ThreadBoxes boxes = {};
  std::set<ir::VarId> thread_vars = {};  // bound by the threads' loops so far: each thread has its own
  int64_t first_thread = 0;              // along x, of the threads of `launch` in the user's block
  int32_t number = 0;                    // of the launch: what its buffers say they belong to, until all are lowered
  size_t user_buffers = 0;  // rows of the table that are the user's; what follows are temporaries of the lowering

  const ir::Buffer& buffer(ir::BufferId id) const { return program.buffer(id); }
  // Of the elements: a tile may be stored in a wider type.
  DType type(ir::BufferId id) const { return buffer(id).tile ? buffer(id).tile->element : buffer(id).type; }
  bool is_global(ir::BufferId id) const { return program.buffer(program.root(id)).space == ir::Space::Global; }
  const SourceLocation& location() const { return program.location(at); }
  template <class T>
  ir::Stmt make(T op) const {
    return ir::make_stmt(std::move(op), at);
  }
  // A loop variable of 64 bits with values below `extent`.
  ir::Expr index(const std::string& name, const ir::Expr& extent);
  // A buffer of this launch that the lowering needs for itself.
  ir::BufferId temporary(const std::string& name, DType type, std::vector<int64_t> shape, ir::Space space);
};

inline bool is_loop(const ir::Stmt& s) { return s.as<ir::For>() || s.as<ir::While>(); }
// What to do where this engine does not do it.
inline constexpr const char* kUseInterpreter =
    "the interpreter runs it: engine=\"interpreter\" in Python, Engine::Interpreter in C++";
inline ir::VarId id_of(const ir::Expr& var) { return var.as<ir::Var>()->id; }
ir::Expr minimum(const ir::Expr& a, const ir::Expr& b);
ir::Expr maximum(const ir::Expr& a, const ir::Expr& b);

// for var in begin .. end.
ir::Stmt loop(const Lowering& l, const ir::Expr& var, const ir::Expr& begin, const ir::Expr& end, ir::Body body,
              ir::LoopKind kind = ir::LoopKind::Serial);

// The type in which a reduction, a scan or a gemm into `type` accumulates: float for the floats below 32 bits.
DType accumulator(DType type);
// op(a, b) as a reduction combines; nothing is abs'ed here.
ir::Expr combine(ir::ReduceOp op, const ir::Expr& a, const ir::Expr& b, bool nan_propagate);
ir::Expr identity(ir::ReduceOp op, DType type);
// What a reduction or a scan leaves of its total: what max and min chose is of the type already, an infinity too.
ir::Expr as_result(ir::ReduceOp op, const ir::Expr& total, DType type);
// What a scan goes on from: it leaves the first element as it is, a negative zero or NaN too.
ir::Expr scan_start(ir::ReduceOp op, DType type);

// What is known of elements that the statements write, in whatever order, is known no more.
void forget_written(const ir::Body& body, Lowering& l);
// What holds in every turn of the loop.
void assume_turn(const ir::For& loop, Lowering& l);

// A tile op as loops, in a file of the op's.
template <ir::TileOp Op>
ir::Body lower(const Op& op, Lowering& l);

// A nest of loops over a box whose body is scalar code: accesses of global memory get bounds checks, which leave the
// loops where they can. The innermost loop is marked Vectorized if its points are independent and straight-line.
ir::Body lower_box(const std::vector<ir::Expr>& vars, const std::vector<ir::Expr>& extents, const ir::Body& body,
                   Lowering& l);
// The same for scalar code outside any box. Indices become 64 bits wide.
ir::Body guard_accesses(const ir::Body& body, Lowering& l);
ir::Expr guard_accesses(const ir::Expr& e, Lowering& l);
// A tile op without elements of global memory that may be none in its operands: `names` are given to them before it.
ir::Stmt with_sure_operands(const ir::Stmt& op, ir::Body& names, Lowering& l);
// Whether an element of global memory is one; none: it is for sure. It may be known that it is not.
ir::Expr bounds_check(ir::BufferId buffer, const std::vector<ir::Expr>& index, Lowering& l);

}  // namespace tilewright::passes
