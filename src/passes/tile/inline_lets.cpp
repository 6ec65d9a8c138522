#include "passes/tile/inline_lets.h"

#include "ir/buffer_vars.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/known_conditions.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool is_linear(const Expr& e) {
  if (!e->type.is_int()) return false;
  if (e.as<Var>() || e.as<Const>()) return true;
  const auto* s = e.as<ir::Sum>();
  return s && std::all_of(s->terms.begin(), s->terms.end(), [](const Term& t) { return is_linear(t.value); });
}

bool fits(const Interval& range, DType type) {
  const Interval all = range_of_type(type);
  return range.low >= all.low && range.high <= all.high;
}

// A name's value wraps around its type; as a part of an index, which does not, it would be another. Where each term
// fits, a sum of two of them that does not is no place of a tensor, wrapped or not: rows from what memory says, start +
// k * 32, are sums. Of two numbers that may be anything it is one: those at an end of the type add up to one near 0.
bool stays_in_type(const Expr& value, const Intervals& intervals) {
  const Expr w = widen(value);
  const Interval all = intervals.of(w), type = range_of_type(value->type);
  if (fits(all, value->type)) return true;
  const auto* s = w.as<ir::Sum>();
  constexpr size_t kTerms = 2;
  constexpr int64_t kRows = 32;  // that a step goes on at least
  const int64_t turn = type.high - type.low + 1;
  return s && value->type.is_signed() && s->terms.size() <= kTerms && all.low >= kRows - turn &&
         all.high <= turn - kRows && std::all_of(s->terms.begin(), s->terms.end(), [&](const Term& t) {
           return fits(intervals.of(ir::sum({t}, 0, w->type)), value->type);
         });
}

// Whether the sum stays in its type, whatever that is: as its terms are, added up in 64 bits. At the ends of those, a
// range says that nothing is known.
bool never_wraps(const ir::Sum& s, DType type, const Intervals& intervals) {
  std::vector<Term> terms;
  for (const Term& t : s.terms) terms.push_back({t.coefficient, widen(t.value)});
  const Interval all = intervals.of(ir::sum(std::move(terms), s.constant, i64));
  return all.low > -kUnbounded && all.high < kUnbounded && fits(all, type);
}

// Quotients of sums of which the divisor divides each part are sums, where no part wraps around.
std::optional<Expr> whole_quotient(const Expr& e, const Intervals& intervals) {
  const auto* b = e.as<Binary>();
  const auto* s = b && b->op == BinaryOp::FloorDiv ? b->a.as<ir::Sum>() : nullptr;
  const int64_t by = s ? constant_int(b->b).value_or(0) : 0;
  if (by <= 1 || s->constant % by != 0) return std::nullopt;
  std::vector<Term> terms;
  for (const Term& t : s->terms) {
    if (t.coefficient % by != 0) return std::nullopt;
    terms.push_back({t.coefficient / by, t.value});
  }
  if (!never_wraps(*s, e->type, intervals)) return std::nullopt;
  return ir::sum(std::move(terms), s->constant / by, e->type);
}

// Names of the launch, as far as ranges show that they are sums.
void inline_names(Launch& launch, const std::set<VarId>& of_buffers, const Intervals& known) {
  Substitution values;
  const Intervals intervals = ranges_in(launch, known);
  const auto quotient = [&](const Expr& e) { return whole_quotient(e, intervals); };
  walk(launch.body, [&](const Stmt& s) {
    const auto* let = s.as<Let>();
    if (!let || !let->value->type.is_int() || of_buffers.contains(let->var)) return;
    Expr value = rewrite(substitute(let->value, values), quotient);
    if (is_linear(value) && stays_in_type(value, intervals)) values[let->var] = std::move(value);
  });
  const Body without = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
    const auto* let = s.as<Let>();
    return let && values.contains(let->var) ? std::optional(Body{}) : std::nullopt;
  });
  launch.body = rewrite_exprs(substitute(without, values), quotient);
}

}  // namespace

TileProgram inline_lets(TileProgram program) {
  constexpr int kRounds = 4;  // the end of a tile in a part of the rows: of the part, of the loop, of the tile
  const std::set<VarId> of_buffers = vars_of_buffers(program);
  const Intervals known = ranges_of_symbols(program);
  for (Launch& launch : program.launches) {
    for (int round = 0; round < kRounds; ++round) {
      inline_names(launch, of_buffers, known);
      // Where names are gone more is known: an end that was the lesser of two is a sum now, and a name of it too.
      if (!decide_known_conditions(launch, known)) break;
      launch.body = without_decided_branches(launch.body);
    }
  }
  return program;
}

}  // namespace tilewright::passes
