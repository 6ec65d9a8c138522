#include "analysis/turns_apart.h"

#include <bit>
#include <cstdlib>
#include <span>

#include "analysis/body_order.h"
#include "analysis/slope.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int kMaxChoices = 4;  // by conditions, each of which doubles the cases
constexpr int64_t kMaxCoefficient = int64_t{1} << 40, kMaxSpread = int64_t{1} << 60;  // sums of which do not wrap

struct Division {
  Expr dividend, divisor;
  bool floors = true, is_rest = false;
};

std::optional<Division> division_of(const Expr& e) {
  const auto* n = e.as<Binary>();
  if (!n) return std::nullopt;
  switch (n->op) {
    case BinaryOp::FloorDiv: return Division{n->a, n->b, true, false};
    case BinaryOp::FloorMod: return Division{n->a, n->b, true, true};
    case BinaryOp::TruncDiv: return Division{n->a, n->b, false, false};
    case BinaryOp::TruncMod: return Division{n->a, n->b, false, true};
    default: break;
  }
  const auto by = constant_int(n->b);
  if (n->op == BinaryOp::Shr && by && *by >= 0 && *by < 31)
    return Division{n->a, constant(n->a->type, int64_t{1} << *by), true, false};
  if (n->op == BinaryOp::BitAnd && by && *by > 0 && *by < INT32_MAX && std::has_single_bit(uint64_t(*by) + 1))
    return Division{n->a, constant(n->a->type, *by + 1), true, true};
  return std::nullopt;
}

// Two turns of the first of some loops, whatever turns of the others they are in. Suppose that their boxes meet: what
// follows is the same in both turns, until the loop's variable is, which cannot be.
class TwoTurns {
 public:
  TwoTurns(const ProgramTables& p, const Launch& launch, std::span<const StmtNode* const> loops)
      : p_(p), launch_(launch), loops_(loops), loop_(std::get<For>(loops[0]->op)), varying_(bound_vars(loop_.body)) {
    varying_.insert(loop_.var);
  }

  bool are_apart(const Box& box, int choices = kMaxChoices) {
    same_.clear(), sums_.clear(), divisions_.clear();
    if (const Expr condition = open_choice(box))
      return choices > 0 && are_apart(chosen(box, condition, true), choices - 1) &&
             are_apart(chosen(box, condition, false), choices - 1);
    for (size_t d = 0; d < box.min.size(); ++d) {
      if (!box.extent[d]) continue;
      sums_.push_back({{}, *box.extent[d]});
      if (!add_terms(box.min[d], 1, sums_.back().terms, true)) sums_.pop_back();
    }
    for (const Expr& min : box.min)
      walk(min, [&](const Expr& e) {
        if (const auto n = division_of(e)) divisions_.push_back({e, *n});
      });
    bool more = true;
    while (more) {
      more = false;
      for (const Sum& s : sums_) {
        const Expr found = largest_of(s);
        if (!found) continue;
        if (const Var* v = found.as<Var>(); v && v->id == loop_.var) return true;
        same_.push_back(found), more = true;
      }
      more = join_divisions() || more;
    }
    return false;
  }

 private:
  struct Sum {  // of the two turns; they differ by less than this
    std::vector<Term> terms;
    int64_t limit;
  };

  // ---- choices that both turns take alike
  Expr open_choice(const Box& box) const {
    Expr found;
    for (size_t d = 0; d < box.min.size(); ++d)
      walk(box.min[d], [&](const Expr& e) {
        const auto* n = e.as<Select>();
        if (n && !found && is_same(n->condition)) found = n->condition;
      });
    return found;
  }
  static Box chosen(const Box& box, const Expr& condition, bool first) {
    Box out = box;
    for (Expr& min : out.min)
      min = rewrite(min, [&](const Expr& e) -> std::optional<Expr> {
        const auto* n = e.as<Select>();
        if (!n || !equal(n->condition, condition)) return std::nullopt;
        return first ? n->a : n->b;
      });
    return out;
  }

  // ---- what is the same in both turns
  bool is_same(const Expr& e) const {
    if (std::any_of(same_.begin(), same_.end(), [&](const Expr& s) { return equal(s, e); })) return true;
    if (const auto* n = e.as<Var>()) return !varying_.contains(n->id);
    if (e.as<Address>()) return false;
    if (const auto* n = e.as<Load>(); n && !keeps_loads(p_, launch_, loop_.body, e)) return false;
    bool all = true;
    for_each_operand(e, [&](const Expr& x) { all = all && is_same(x); });
    return all;
  }
  // What a sum is of, as far as it says: sums of an index are those of 64 bits (ir/widen.h), others wrap around their
  // type. False: a coefficient is too large.
  bool add_terms(const Expr& e, int64_t factor, std::vector<Term>& out, bool of_index) const {
    if (is_constant(e)) return true;
    if (const auto* n = e.as<Cast>(); n && (is_exact(*n, e->type) || spread(e)))
      return add_terms(n->value, factor, out, false);
    if (const ir::Sum* s = sum_of(e); s && ((of_index && e->type.is_signed()) || spread(e)))
      return std::all_of(s->terms.begin(), s->terms.end(), [&](const Term& t) {
        return std::abs(t.coefficient) <= kMaxCoefficient / std::max<int64_t>(std::abs(factor), 1) &&
               add_terms(t.value, factor * t.coefficient, out, of_index);
      });
    const auto known = std::find_if(out.begin(), out.end(), [&](const Term& t) { return equal(t.value, e); });
    if (known == out.end()) {
      out.push_back({factor, e});
      return true;
    }
    known->coefficient += factor;
    return std::abs(known->coefficient) <= kMaxCoefficient;
  }
  // A value that the wider type has too.
  static bool is_exact(const Cast& n, DType type) {
    const DType of = n.value->type;
    return type.is_int() && of.is_int() && !sum_of(n.value) &&
           (type == of || (type.bits > of.bits && (type.is_signed() || !of.is_signed())));
  }
  // By how much it may differ between the turns; none: by anything. What differs by more than half of its type may wrap
  // around it.
  std::optional<int64_t> spread(const Expr& e) const {
    if (is_same(e)) return 0;
    if (const auto* n = e.as<Cast>()) {
      if (is_exact(*n, e->type)) return spread(n->value);
      return holds_indices(e->type, n->value->type) ? in_32_bits(spread(n->value)) : std::nullopt;
    }
    if (const auto* n = e.as<Var>()) return spread_of_loop(n->id);
    if (const auto n = division_of(e)) {
      const auto by = constant_int(n->divisor);
      if (!by || *by <= 0 || *by > INT32_MAX) return std::nullopt;
      if (n->is_rest) return (*by - 1) * (n->floors ? 1 : 2);
      const auto all = spread(n->dividend);
      return all ? std::optional((*all + *by - 1) / *by) : std::nullopt;
    }
    const ir::Sum* s = sum_of(e);
    return s ? in_32_bits(spread(s->terms)) : std::nullopt;
  }
  static std::optional<int64_t> in_32_bits(std::optional<int64_t> spread) {
    return spread && *spread <= INT32_MAX ? spread : std::nullopt;
  }
  std::optional<int64_t> spread(const std::vector<Term>& terms) const {
    int64_t out = 0;
    for (const Term& t : terms) {
      const auto by = t.coefficient == 0 ? std::optional<int64_t>(0) : spread(t.value);
      if (!by || *by > kMaxSpread / std::max<int64_t>(std::abs(t.coefficient), 1)) return std::nullopt;
      out += std::abs(t.coefficient) * *by;
      if (out > kMaxSpread) return std::nullopt;
    }
    return out;
  }
  std::optional<int64_t> spread_of_loop(VarId v) const {
    for (const StmtNode* loop : loops_)
      if (const auto* n = std::get_if<For>(&loop->op); n && n->var == v) {
        const auto turns = constant_int(n->extent);
        const bool known = turns && *turns > 0 && (n->var == loop_.var || is_same(n->begin));
        return known ? std::optional(*turns - 1) : std::nullopt;
      }
    return std::nullopt;
  }

  // ---- what follows
  // The term that must be the same where all others together cannot make up for a step of it; none: there is none.
  Expr largest_of(const Sum& s) const {
    std::vector<Term> open;
    for (const Term& t : s.terms)
      if (t.coefficient != 0 && !is_same(t.value)) open.push_back(t);
    if (open.empty()) return {};
    const auto largest = std::max_element(open.begin(), open.end(), [](const Term& a, const Term& b) {
      return std::abs(a.coefficient) < std::abs(b.coefficient);
    });
    const Term found = *largest;
    open.erase(largest);
    const auto others = spread(open);
    return others && std::abs(found.coefficient) - s.limit >= *others ? found.value : Expr{};
  }
  // Where the quotient and the rest of a division are the same, what was divided is.
  bool join_divisions() {
    const size_t known = sums_.size();
    for (const auto& [quotient, q] : divisions_) {
      if (q.is_rest || !is_same(quotient) || !is_same(q.divisor) || is_same(q.dividend)) continue;
      const bool whole = std::any_of(divisions_.begin(), divisions_.end(), [&](const auto& other) {
        const auto& [rest, r] = other;
        return r.is_rest && r.floors == q.floors && equal(r.dividend, q.dividend) && equal(r.divisor, q.divisor) &&
               is_same(rest);
      });
      if (!whole) continue;
      if (sum_of(q.dividend)) same_.push_back(q.dividend);
      sums_.push_back({{}, 1});
      if (!add_terms(q.dividend, 1, sums_.back().terms, false)) sums_.pop_back();
    }
    return sums_.size() > known;
  }

  const ProgramTables& p_;
  const Launch& launch_;
  const std::span<const StmtNode* const> loops_;
  const For& loop_;
  std::set<VarId> varying_;
  std::vector<Expr> same_;
  std::vector<Sum> sums_;
  std::vector<std::pair<Expr, Division>> divisions_;
};

}  // namespace

bool keeps_loads(const ProgramTables& program, const Launch& launch, const Body& body, const Expr& e) {
  bool has_roles = false;  // which change memory beside each other
  walk(launch.body, [&](const Stmt& s) { has_roles = has_roles || s.as<Role>(); });
  bool keeps = true;
  walk(e, [&](const Expr& x) {
    const auto* n = x.as<Load>();
    if (!n || !keeps) return;
    const BufferId root = program.root(n->buffer);
    const bool is_global = program.buffer(root).space == Space::Global;  // other blocks change it too
    for (BufferId changed : changed_roots(is_global || has_roles ? launch.body : body, program))
      keeps = keeps && !may_overlap(root, changed, program);
  });
  return keeps;
}

bool turns_are_apart(const ProgramTables& program, const Launch& launch, const std::vector<const StmtNode*>& loops,
                     const Box& box) {
  for (size_t i = 0; i < loops.size(); ++i) {
    const auto* n = std::get_if<For>(&loops[i]->op);
    if (!n) return false;
    if (const auto turns = constant_int(n->extent); turns && *turns <= 1) continue;
    if (!TwoTurns(program, launch, std::span(loops).subspan(i)).are_apart(box)) return false;
  }
  return true;
}

}  // namespace tilewright::analysis
