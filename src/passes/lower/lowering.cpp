#include "passes/lower/lowering.h"

#include "analysis/body_order.h"
#include "ir/effects.h"
#include "scalar/functions.h"

namespace tilewright::passes {

using namespace ir;

Expr Lowering::index(const std::string& name, const Expr& extent) {
  const VarId id = program.new_var(name, i64);
  intervals.set(id, {0, std::max<int64_t>(intervals.of(extent).high - 1, 0)});
  return var(id, i64);
}

BufferId Lowering::temporary(const std::string& name, DType type, std::vector<int64_t> shape, Space space) {
  Buffer b;
  b.name = name, b.type = type, b.space = space;
  for (int64_t extent : shape) b.shape.push_back(constant(i32, extent));
  b.launch = number;
  return program.new_buffer(std::move(b));
}

void forget_written(const Body& body, Lowering& l) {
  if (!l.intervals.knows_reads()) return;
  const std::set<BufferId> written = changed_roots(body, l.program);
  l.intervals.drop_reads([&](BufferId id) { return analysis::may_overlap(id, written, l.program); });
}

void assume_turn(const For& loop, Lowering& l) {
  bool changes = constant_int(loop.begin) != 0;
  walk(loop.extent, [&](const Expr& x) { changes = changes || x.as<Load>() || x.as<Intrinsic>(); });
  const Interval exact = l.intervals.of(widen(loop.extent)), type = range_of_type(loop.extent->type);
  if (changes || exact.low < type.low || exact.high > type.high) return;  // an extent that may wrap around says nothing
  l.intervals.assume(binary(BinaryOp::Lt, widen(var(loop.var, l.program.var(loop.var).type)), widen(loop.extent)));
}

Expr minimum(const Expr& a, const Expr& b) { return binary(BinaryOp::Min, a, b); }
Expr maximum(const Expr& a, const Expr& b) { return binary(BinaryOp::Max, a, b); }

Stmt loop(const Lowering& l, const Expr& var, const Expr& begin, const Expr& end, Body body, LoopKind kind) {
  For f;
  f.var = id_of(var), f.begin = begin, f.extent = sub(end, begin), f.kind = kind, f.body = std::move(body);
  return l.make(std::move(f));
}

DType accumulator(DType type) { return type.is_float() && type.bits < 64 ? f32 : type; }

Expr combine(ReduceOp op, const Expr& a, const Expr& b, bool nan_propagate) {
  if (a->type.is_bool() && (op == ReduceOp::Max || op == ReduceOp::AbsMax)) return binary(BinaryOp::Or, a, b);
  if (a->type.is_bool() && op == ReduceOp::Min) return binary(BinaryOp::And, a, b);
  const bool nans = nan_propagate && a->type.is_float();
  switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::AbsSum: return a->type.is_bool() ? binary(BinaryOp::Or, a, b) : add(a, b);
    case ReduceOp::Max:
    case ReduceOp::AbsMax: return binary(nans ? BinaryOp::MaxNan : BinaryOp::Max, a, b);
    case ReduceOp::Min: return binary(nans ? BinaryOp::MinNan : BinaryOp::Min, a, b);
    case ReduceOp::BitAnd: return binary(BinaryOp::BitAnd, a, b);
    case ReduceOp::BitOr: return binary(BinaryOp::BitOr, a, b);
    case ReduceOp::BitXor: return binary(BinaryOp::BitXor, a, b);
  }
  return {};
}

Expr identity(ReduceOp op, DType type) {
  const double infinity = std::numeric_limits<double>::infinity();
  const bool is_signed = type.is_signed();
  switch (op) {
    case ReduceOp::Max:
      if (type.is_float()) return constant(type, -infinity);
      return constant(type, is_signed ? int64_t(uint64_t{1} << (type.bits - 1)) : int64_t{0});
    case ReduceOp::Min:
      if (type.is_float()) return constant(type, infinity);
      return constant(type, is_signed ? int64_t((uint64_t{1} << (type.bits - 1)) - 1) : int64_t{-1});
    case ReduceOp::BitAnd: return constant(type, int64_t{-1});
    default: return constant(type, int64_t{0});
  }
}

Expr as_result(ReduceOp op, const Expr& total, DType type) {
  const bool chooses = op == ReduceOp::Max || op == ReduceOp::Min || op == ReduceOp::AbsMax;
  const Expr result = cast(total, type);
  if (!chooses || type != e5m2 || total->type != f32) return result;
  // The type is the upper half of float16, and a cast makes infinities finite.
  const Expr infinity = constant(f32, std::numeric_limits<double>::infinity());
  const Expr code =
      binary(BinaryOp::BitOr,
             binary(BinaryOp::BitAnd, binary(BinaryOp::Shr, bitcast(total, i32), constant(i32, int64_t{24})),
                    constant(i32, int64_t{0x80})),
             constant(i32, int64_t{0x7c}));
  return select(binary(BinaryOp::Eq, intrinsic(*function_named("abs"), {total}), infinity),
                bitcast(cast(code, u8), e5m2), result);
}

Expr scan_start(ReduceOp op, DType type) {
  if (!type.is_float()) return identity(op, type);
  return constant(type, op == ReduceOp::Sum ? -0.0 : std::numeric_limits<double>::quiet_NaN());
}

}  // namespace tilewright::passes
