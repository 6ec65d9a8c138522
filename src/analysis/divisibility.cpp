#include "analysis/divisibility.h"

#include <numeric>

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kLargest = int64_t{1} << 20;

int64_t power_of_two(int64_t value) { return std::gcd(value, kLargest); }

}  // namespace

int64_t power_of_two_divisor(const Expr& e) {
  if (auto c = constant_int(e)) return power_of_two(*c);
  if (const auto* n = e.as<Sum>()) {
    int64_t d = power_of_two(n->constant);
    for (const Term& t : n->terms)
      d = std::gcd(d, power_of_two(power_of_two(t.coefficient) * power_of_two_divisor(t.value)));
    return d;
  }
  if (const auto* n = e.as<Cast>(); n && n->value->type.is_int() && e->type.is_int() && e->type.bits >= 32)
    return power_of_two_divisor(n->value);
  if (const auto* n = e.as<Binary>()) {
    const auto a = [&] { return power_of_two_divisor(n->a); };
    const auto b = [&] { return power_of_two_divisor(n->b); };
    if (n->op == BinaryOp::Mul) return power_of_two(a() * b());
    if (n->op == BinaryOp::Min || n->op == BinaryOp::Max) return std::gcd(a(), b());
  }
  if (const auto* n = e.as<Select>()) return std::gcd(power_of_two_divisor(n->a), power_of_two_divisor(n->b));
  return 1;
}

}  // namespace tilewright::analysis
