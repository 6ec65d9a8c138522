#include "analysis/divisibility.h"

#include <algorithm>
#include <numeric>

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kLargest = int64_t{1} << 20;

int64_t power_of_two(int64_t value) { return std::gcd(value, kLargest); }

class Divisors {
 public:
  explicit Divisors(const ProgramTables* program) : program_(program) {}

  int64_t of(const Expr& e) const {
    if (auto c = constant_int(e)) return power_of_two(*c);
    if (const auto* n = e.as<Var>()) return assumed(n->id);
    if (const auto* n = e.as<Sum>()) {
      int64_t d = power_of_two(n->constant);
      for (const Term& t : n->terms) d = std::gcd(d, power_of_two(power_of_two(t.coefficient) * of(t.value)));
      return d;
    }
    if (const auto* n = e.as<Cast>(); n && n->value->type.is_int() && e->type.is_int() && e->type.bits >= 32)
      return of(n->value);
    if (const auto* n = e.as<Binary>()) {
      if (n->op == BinaryOp::Mul) return power_of_two(of(n->a) * of(n->b));
      // What is left of a multiple by a multiple is one.
      if (n->op == BinaryOp::Min || n->op == BinaryOp::Max || n->op == BinaryOp::FloorMod ||
          n->op == BinaryOp::TruncMod)
        return std::gcd(of(n->a), of(n->b));
      // Where the dividend is a multiple, division is exact.
      const int64_t divisor = n->op == BinaryOp::FloorDiv ? constant_int(n->b).value_or(0) : 0;
      if (divisor > 0 && of(n->a) % divisor == 0) return of(n->a) / divisor;
    }
    if (const auto* n = e.as<Select>()) return std::gcd(of(n->a), of(n->b));
    return 1;
  }

 private:
  int64_t assumed(VarId id) const {
    if (!program_) return 1;
    int64_t out = program_->var(id).multiple;
    for (const Assumption& a : program_->assumptions) {
      const auto* equal = a.condition.as<Binary>();
      if (!equal || equal->op != BinaryOp::Eq || constant_int(equal->b) != 0) continue;
      const auto* rest = equal->a.as<Binary>();
      const auto* v = rest && rest->op == BinaryOp::FloorMod ? rest->a.as<Var>() : nullptr;
      if (v && v->id == id) out = std::max(out, power_of_two(constant_int(rest->b).value_or(1)));
    }
    return out;
  }

  const ProgramTables* program_;
};

}  // namespace

int64_t power_of_two_divisor(const Expr& e) { return Divisors(nullptr).of(e); }
int64_t power_of_two_divisor(const Expr& e, const ProgramTables& program) { return Divisors(&program).of(e); }

bool is_no_multiple(const Expr& e, const ProgramTables& program) {
  const auto* c = e.as<Cast>();
  const auto* v = (c ? c->value : e).as<Var>();
  return v && std::ranges::any_of(program.assumptions, [&](const Assumption& a) {
           const auto* other = a.condition.as<Binary>();
           const auto* rest =
               other && other->op == BinaryOp::Ne && constant_int(other->b) == 0 ? other->a.as<Binary>() : nullptr;
           const auto* of = rest && rest->op == BinaryOp::FloorMod ? rest->a.as<Var>() : nullptr;
           return of && of->id == v->id;
         });
}

void note_multiples(ProgramTables& program) {
  for (const Launch& launch : program.launches)
    walk(launch.body, [&](const Stmt& s) {
      const auto* let = s.as<Let>();
      if (let && let->value->type.is_int())
        program.vars[let->var.index].multiple = power_of_two_divisor(let->value, program);
    });
}

}  // namespace tilewright::analysis
