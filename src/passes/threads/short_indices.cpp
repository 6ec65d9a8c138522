#include "passes/threads/short_indices.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/intervals.h"
#include "passes/lower/narrow.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// floor(number mod below / above): the digits of a number from `above` on, up to `below`; 0: all.
struct Digits {
  Expr number;
  int64_t below = 0, above = 1;

  static Digits of(const Expr& e) {
    const auto by = [](const Binary* n, BinaryOp op) {
      const auto c = n && n->op == op ? constant_int(n->b) : std::nullopt;
      return c && *c > 0 ? *c : 0;
    };
    Digits out{e};
    if (!e->type.is_int()) return out;
    const auto* n = e.as<Binary>();
    if (const int64_t above = by(n, BinaryOp::FloorDiv)) out.above = above, out.number = n->a;
    n = out.number.as<Binary>();
    if (const int64_t below = by(n, BinaryOp::FloorMod); below > 0 && below % out.above == 0)
      out.below = below, out.number = n->a;
    return out;
  }
  Expr value() const {
    const DType type = number->type;
    const Expr low = below > 0 ? binary(BinaryOp::FloorMod, number, constant(type, below)) : number;
    return above > 1 ? binary(BinaryOp::FloorDiv, low, constant(type, above)) : low;
  }
};

// Two terms as one, where the digits of the second go on where those of the first end.
std::optional<Term> joined(const Term& first, const Term& second) {
  const auto plain = [](const Expr& e) {
    const auto* n = e.as<Cast>();
    return n && e->type == i64 && n->value->type == i32 ? n->value : e;
  };
  const Digits high = Digits::of(plain(first.value)), low = Digits::of(plain(second.value));
  if (high.above == 1 || low.below != high.above || high.above % low.above != 0) return std::nullopt;
  if (first.coefficient != second.coefficient * (high.above / low.above)) return std::nullopt;
  if (!equal(high.number, low.number)) return std::nullopt;
  return Term{second.coefficient, cast(Digits{high.number, high.below, low.above}.value(), first.value->type)};
}

std::optional<Expr> with_joined_digits(const Expr& e) {
  const auto* n = e.as<ir::Sum>();
  if (!n || n->terms.size() < 2) return std::nullopt;
  std::vector<Term> terms = n->terms;
  const auto join_two = [&] {
    for (size_t i = 0; i < terms.size(); ++i)
      for (size_t k = 0; k < terms.size(); ++k) {
        const auto one = i == k ? std::nullopt : joined(terms[i], terms[k]);
        if (!one) continue;
        terms[i] = *one;
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(k));
        return true;
      }
    return false;
  };
  while (join_two()) {
  }
  if (terms.size() == n->terms.size()) return std::nullopt;
  return sum(std::move(terms), n->constant, e->type);
}

std::optional<Expr> compared_in_32_bits(const Expr& e, const Intervals& ranges) {
  const auto* n = e.as<Binary>();
  if (!n || n->a->type != i64 || !e->type.is_bool()) return std::nullopt;
  const auto a = in_32_bits(n->a, ranges), b = in_32_bits(n->b, ranges);
  return a && b ? std::optional(binary(n->op, *a, *b)) : std::nullopt;
}

}  // namespace

void short_indices(ThreadProgram& program) {
  const Intervals symbols = ranges_of_symbols(program);
  for (Launch& launch : program.launches) {
    const Intervals ranges = ranges_in(launch, symbols);
    launch.body = rewrite_exprs(launch.body, [&](const Expr& e) {
      if (auto sum = with_joined_digits(e)) return sum;
      return compared_in_32_bits(e, ranges);
    });
  }
}

}  // namespace tilewright::passes
