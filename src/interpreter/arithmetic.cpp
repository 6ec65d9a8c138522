// Arithmetic over lane values. Uniform and affine operands stay what they are where the operator allows.
#include "interpreter/arithmetic.h"

#include <bit>
#include <cstring>

#include "support/diagnostic.h"

namespace tilewright::interpreter {

using ir::BinaryOp;

namespace {

constexpr LaneShape kOne{1, 1};

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

Value result_at(const void* out, LaneKind kind, bool uniform) {
  if (!uniform) return array_value(kind, out);
  if (kind == LaneKind::Int64) return uniform_int(*static_cast<const int64_t*>(out));
  if (kind == LaneKind::Float64) return uniform_float(kind, *static_cast<const double*>(out));
  return uniform_float(kind, static_cast<double>(*static_cast<const float*>(out)));
}

bool all_uniform(std::span<const Value> args) {
  for (const Value& v : args)
    if (!v.uniform()) return false;
  return true;
}

Value sum(const Node& node, std::span<const Value> args, LaneShape shape, Arena& arena, void* out) {
  bool array = false;
  Value affine = uniform_int(node.constant);
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].form == Value::Form::Array) {
      array = true;
      continue;
    }
    affine.base += node.coefficients[i] * args[i].base;
    affine.outer += node.coefficients[i] * args[i].outer;
    affine.inner += node.coefficients[i] * args[i].inner;
  }
  affine = affine_value(affine.base, affine.outer, affine.inner);
  if (!array && affine.uniform()) return uniform_int(wrap(node.type, affine.base));
  if (!array && fits(node.type, extremes(affine, shape))) return affine;
  auto* to = static_cast<int64_t*>(out);
  spread(affine, shape, to);
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].form != Value::Form::Array) continue;
    const int64_t *from = args[i].ints(), coefficient = node.coefficients[i];
#pragma omp simd
    for (int64_t l = 0; l < shape.lanes; ++l)
      to[l] = static_cast<int64_t>(static_cast<uint64_t>(to[l]) +
                                   static_cast<uint64_t>(coefficient) * static_cast<uint64_t>(from[l]));
  }
  (void)arena;
  wrap_lanes(node.type, to, shape.lanes);
  return array_value(LaneKind::Int64, to);
}

// Operators on integers that keep an affine value affine, or make it uniform. Empty: no.
std::optional<Value> affine_apply(const Node& node, std::span<const Value> args, LaneShape shape) {
  if (args.size() != 2 || node.kind() != LaneKind::Int64) return std::nullopt;
  const Value &a = args[0], &b = args[1];
  if (a.form == Value::Form::Array || b.form == Value::Form::Array) return std::nullopt;
  if (node.function == Function::Mul && (a.uniform() || b.uniform())) {
    const Value &affine = a.uniform() ? b : a, &factor = a.uniform() ? a : b;
    Value v = affine_value(affine.base * factor.base, affine.outer * factor.base, affine.inner * factor.base);
    if (fits(node.type, extremes(v, shape))) return v;
  }
  if (!b.uniform() || b.base <= 0 || node.type == u64) return std::nullopt;
  Interval range = extremes(a, shape);
  bool divides = node.function == Function::FloorDiv || (node.function == Function::TruncDiv && range.low >= 0);
  bool remains = node.function == Function::FloorMod || (node.function == Function::TruncMod && range.low >= 0);
  if (!divides && !remains) return std::nullopt;
  int64_t quotient = floor_div(range.low, b.base);
  if (quotient != floor_div(range.high, b.base)) return std::nullopt;
  return divides ? uniform_int(quotient) : affine_value(a.base - quotient * b.base, a.outer, a.inner);
}

Value call(const Node& node, std::span<const Value> args, LaneShape shape, Arena& arena, void* out) {
  bool uniform = all_uniform(args);
  if (!uniform)
    if (auto v = affine_apply(node, args, shape)) return *v;
  LaneShape lanes = uniform ? kOne : shape;
  const void* in[3] = {};
  for (size_t i = 0; i < args.size(); ++i) in[i] = lanes_of(args[i], lanes, arena);
  DType type = node.operand_type();
  apply(node.function, type, std::span(in, args.size()), out, lanes.lanes);
  return result_at(out, node.kind(), uniform);
}

template <class T>
void compare_lanes(BinaryOp op, const T* a, const T* b, int64_t* out, int64_t n) {
  auto loop = [&](auto f) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]) ? 1 : 0;
  };
  switch (op) {
    case BinaryOp::Eq: return loop([](T x, T y) { return x == y; });
    case BinaryOp::Ne: return loop([](T x, T y) { return x != y; });
    case BinaryOp::Lt: return loop([](T x, T y) { return x < y; });
    default: return loop([](T x, T y) { return x <= y; });
  }
}

// A comparison whose intervals do not overlap is the same for all lanes.
std::optional<Value> decided(BinaryOp op, const Value& a, const Value& b, LaneShape shape) {
  Interval x = extremes(a, shape), y = extremes(b, shape);
  auto is = [](bool truth) { return uniform_int(truth ? 1 : 0); };
  if (op == BinaryOp::Lt && (x.high < y.low || x.low >= y.high)) return is(x.high < y.low);
  if (op == BinaryOp::Le && (x.high <= y.low || x.low > y.high)) return is(x.high <= y.low);
  if ((op == BinaryOp::Eq || op == BinaryOp::Ne) && (x.high < y.low || y.high < x.low)) return is(op == BinaryOp::Ne);
  return std::nullopt;
}

Value binary(const Node& node, std::span<const Value> args, LaneShape shape, Arena& arena, void* out) {
  bool uniform = all_uniform(args);
  DType type = node.operand_type();
  LaneKind kind = lane_kind(type);
  bool compares = ir::is_comparison(node.binary);
  if (compares && kind == LaneKind::Int64 && type != u64 && type != pointer && args[0].form != Value::Form::Array &&
      args[1].form != Value::Form::Array)
    if (auto v = decided(node.binary, args[0], args[1], shape)) return *v;
  LaneShape lanes = uniform ? kOne : shape;
  const void *a = lanes_of(args[0], lanes, arena), *b = lanes_of(args[1], lanes, arena);
  auto* to = static_cast<int64_t*>(out);
  const auto *x = static_cast<const int64_t*>(a), *y = static_cast<const int64_t*>(b);
  int64_t n = lanes.lanes;
  if (compares) {
    if (kind == LaneKind::Float32)
      compare_lanes(node.binary, static_cast<const float*>(a), static_cast<const float*>(b), to, n);
    else if (kind == LaneKind::Float64)
      compare_lanes(node.binary, static_cast<const double*>(a), static_cast<const double*>(b), to, n);
    else if (type == u64 || type == pointer)
      compare_lanes(node.binary, static_cast<const uint64_t*>(a), static_cast<const uint64_t*>(b), to, n);
    else
      compare_lanes(node.binary, x, y, to, n);
  } else {
    for (int64_t i = 0; i < n; ++i)
      to[i] = node.binary == BinaryOp::BitAnd  ? x[i] & y[i]
              : node.binary == BinaryOp::BitOr ? x[i] | y[i]
                                               : x[i] ^ y[i];
  }
  return result_at(out, LaneKind::Int64, uniform);
}

Value invert(const Node& node, const Value& a, LaneShape shape, Arena& arena, void* out) {
  LaneShape lanes = a.uniform() ? kOne : shape;
  const auto* from = static_cast<const int64_t*>(lanes_of(a, lanes, arena));
  auto* to = static_cast<int64_t*>(out);
  for (int64_t i = 0; i < lanes.lanes; ++i) to[i] = node.op == Node::Op::Not ? (from[i] ? 0 : 1) : ~from[i];
  if (node.op == Node::Op::BitNot) wrap_lanes(node.type, to, lanes.lanes);
  return result_at(out, LaneKind::Int64, a.uniform());
}

Value bitcast(const Node& node, const Value& a, LaneShape shape, Arena& arena, void* out) {
  LaneShape lanes = a.uniform() ? kOne : shape;
  DType from = node.args[0]->type;
  const void* in = lanes_of(a, lanes, arena);
  void* bits = arena.allocate(lanes.lanes * 8 + 8);
  store_lanes(from, bits, Elements{}, lanes.lanes, in);
  load_lanes(node.type, bits, Elements{}, lanes.lanes, out);
  return result_at(out, node.kind(), a.uniform());
}

Value cast(const Node& node, std::span<const Value> args, LaneShape shape, Arena& arena, void* out) {
  if (args.size() == 1 && node.rounding == Rounding::Nearest)
    return cast_value(args[0], node.args[0]->type, node.type, shape, arena, out);
  bool uniform = all_uniform(args);
  LaneShape lanes = uniform ? kOne : shape;
  const void* in = lanes_of(args[0], lanes, arena);
  const void* random = args.size() > 1 ? lanes_of(args[1], lanes, arena) : nullptr;
  convert(node.args[0]->type, node.type, node.rounding, in, static_cast<const int64_t*>(random), out, lanes.lanes);
  return result_at(out, node.kind(), uniform);
}

}  // namespace

const void* lanes_of(const Value& value, LaneShape shape, Arena& arena) {
  if (value.form == Value::Form::Array) return value.data;
  void* memory = arena.allocate(shape.lanes * lane_bytes(value.kind));
  spread(value, shape, memory);
  return memory;
}

Value cast_value(const Value& value, DType from, DType to, LaneShape shape, Arena& arena, void* out) {
  LaneKind kind = lane_kind(to);
  if (value.form == Value::Form::Affine && !to.is_bool() && kind == LaneKind::Int64 && fits(to, extremes(value, shape)))
    return value;
  LaneShape lanes = value.uniform() ? kOne : shape;
  const void* in = lanes_of(value, lanes, arena);
  convert(from, to, Rounding::Nearest, in, nullptr, out, lanes.lanes);
  return result_at(out, kind, value.uniform());
}

Value blend(const Value& condition, const Value& a, const Value& b, LaneShape shape, Arena& arena, void* out) {
  if (condition.uniform()) {
    const Value& chosen = condition.base ? a : b;
    if (chosen.form != Value::Form::Array) return chosen;
    std::memmove(out, chosen.data, static_cast<size_t>(shape.lanes * lane_bytes(chosen.kind)));
    return array_value(chosen.kind, out);
  }
  const auto* c = static_cast<const int64_t*>(lanes_of(condition, shape, arena));
  const void *x = lanes_of(a, shape, arena), *y = lanes_of(b, shape, arena);
  if (a.kind == LaneKind::Float32) {
    const auto *p = static_cast<const float*>(x), *q = static_cast<const float*>(y);
    auto* to = static_cast<float*>(out);
    for (int64_t i = 0; i < shape.lanes; ++i) to[i] = c[i] ? p[i] : q[i];
  } else {
    const auto *p = static_cast<const uint64_t*>(x), *q = static_cast<const uint64_t*>(y);
    auto* to = static_cast<uint64_t*>(out);
#pragma omp simd
    for (int64_t i = 0; i < shape.lanes; ++i) to[i] = c[i] ? p[i] : q[i];
  }
  return array_value(a.kind, out);
}

Value combine(const Node& node, std::span<const Value> args, LaneShape shape, Arena& arena, void* out) {
  switch (node.op) {
    case Node::Op::Sum: return sum(node, args, shape, arena, out);
    case Node::Op::Apply:
    case Node::Op::Divide: return call(node, args, shape, arena, out);
    case Node::Op::Binary: return binary(node, args, shape, arena, out);
    case Node::Op::Not:
    case Node::Op::BitNot: return invert(node, args[0], shape, arena, out);
    case Node::Op::Cast: return cast(node, args, shape, arena, out);
    case Node::Op::Bitcast: return bitcast(node, args[0], shape, arena, out);
    default: fail_internal("this operator is not the arithmetic's", __FILE__, __LINE__);
  }
}

int64_t bad_divisor(const Node& node, const Value& a, const Value& b, LaneShape shape, const Mask& mask) {
  if (b.uniform() && b.base != 0 && b.base != -1) return -1;
  bool is_signed = node.type.is_signed();
  int64_t least = is_signed ? wrap(node.type, int64_t{1} << (node.type.bits - 1)) : 0;
  for (int64_t l = 0; l < shape.lanes; ++l) {
    if (!mask.at(l)) continue;
    int64_t d = b.int_at(l, shape.columns);
    if (d == 0 || (is_signed && d == -1 && a.int_at(l, shape.columns) == least)) return l;
  }
  return -1;
}

}  // namespace tilewright::interpreter
