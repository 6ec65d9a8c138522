#include "passes/lower/narrow.h"

#include <limits>

#include "ir/operators.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool is_narrow(Interval i) {
  return i.low >= std::numeric_limits<int32_t>::min() && i.high <= std::numeric_limits<int32_t>::max();
}

std::optional<Expr> of_operation(const Binary& n, const Intervals& ranges) {
  switch (n.op) {
    case BinaryOp::FloorDiv:
    case BinaryOp::FloorMod:
    case BinaryOp::TruncDiv:
    case BinaryOp::TruncMod:
      if (ranges.of(n.b).low <= 0) return std::nullopt;  // -2^31 by -1 is no int32
      break;
    case BinaryOp::Shr:
      if (const auto by = constant_int(n.b); !by || *by < 0 || *by > 31) return std::nullopt;
      break;
    case BinaryOp::Mul:
    case BinaryOp::Min:
    case BinaryOp::Max:
    case BinaryOp::BitAnd:
    case BinaryOp::BitOr:
    case BinaryOp::BitXor: break;
    default: return std::nullopt;
  }
  const auto a = in_32_bits(n.a, ranges), b = in_32_bits(n.b, ranges);
  return a && b ? std::optional(binary(n.op, *a, *b)) : std::nullopt;
}

}  // namespace

std::optional<Expr> in_32_bits(const Expr& e, const Intervals& ranges) {
  if (e->type == i32) return e;
  if (e->type != i64 || !is_narrow(ranges.of(e))) return std::nullopt;
  if (const auto c = constant_int(e)) return constant(i32, *c);
  if (e.as<Var>()) return cast(e, i32);
  if (const auto* n = e.as<Cast>()) {
    if (!n->value->type.is_int()) return std::nullopt;
    return n->value->type == i32 ? n->value : cast(n->value, i32);
  }
  if (const auto* n = e.as<ir::Sum>()) {
    if (!ranges.stays_in(*n, i32)) return std::nullopt;
    std::vector<Term> terms;
    for (const Term& t : n->terms) {
      const auto value = in_32_bits(t.value, ranges);
      if (!value || t.coefficient < std::numeric_limits<int32_t>::min() ||
          t.coefficient > std::numeric_limits<int32_t>::max())
        return std::nullopt;
      terms.push_back({t.coefficient, *value});
    }
    return sum(std::move(terms), n->constant, i32);
  }
  const auto* n = e.as<Binary>();
  return n ? of_operation(*n, ranges) : std::nullopt;
}

}  // namespace tilewright::passes
