#include "passes/lower/strides.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Nodes of an index that names are put into: names of names may double it at each step.
constexpr uint32_t kLargestIndex = 1024;
constexpr int64_t kFar = 16;  // elements: a line of the cache, if they have four bytes

// The offset of an element where every variable has a value, if it is known then.
std::optional<int64_t> offset_at(BufferId id, const std::vector<Expr>& index, Substitution values,
                                 const ProgramTables& program) {
  const Buffer& b = program.buffer(id);
  if (b.is_view() || !b.strides.empty()) return std::nullopt;
  int64_t offset = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    walk(index[d], [&](const Expr& e) {
      if (const auto* v = e.as<Var>()) values.try_emplace(v->id, constant(e->type, int64_t{1}));
    });
    const auto i = constant_int(substitute(index[d], values));
    const auto extent = constant_int(b.shape[d]);
    if (!i || (!extent && d > 0)) return std::nullopt;
    offset = offset * extent.value_or(0) + *i;
  }
  return offset;
}

}  // namespace

bool strides_past_neighbours(const For& f, function_ref<Substitution(int64_t)> thread_vars,
                             const ProgramTables& program) {
  const DType type = program.var(f.var).type;
  Substitution lets;
  bool beside = false, along = false;
  auto look = [&](BufferId id, const std::vector<Expr>& index) {
    const Space space = program.buffer(program.root(id)).space;
    if (space != Space::Global && space != Space::Shared) return;
    std::vector<Expr> own;
    for (const Expr& e : index) own.push_back(substitute(e, lets));
    auto offset = [&](int64_t thread, int64_t iteration) {
      Substitution values = thread_vars(thread);
      values[f.var] = constant(type, iteration);
      return offset_at(id, own, std::move(values), program);
    };
    const auto here = offset(0, 0), next_thread = offset(1, 0), next_iteration = offset(0, 1);
    if (!here || !next_thread || !next_iteration) return;
    const int64_t step = std::abs(*next_thread - *here), stride = std::abs(*next_iteration - *here);
    beside = beside || (step == 1 && stride >= kFar);
    along = along || (stride == 1 && step > 1);
  };
  auto look_in = [&](const Expr& e) {
    walk(e, [&](const Expr& x) {
      if (const auto* n = x.as<Load>()) look(n->buffer, n->indices);
    });
  };
  walk(f.body, [&](const Stmt& s) {
    for_each_expr(s, look_in);
    if (const auto* n = s.as<Let>()) {
      const Expr whole = substitute(n->value, lets);
      if (whole->size <= kLargestIndex) lets[n->var] = whole;
    }
    if (const auto* n = s.as<Store>()) look(n->to.buffer, n->to.indices);
    if (const auto* n = s.as<Atomic>()) look(n->to.buffer, n->to.indices);
  });
  return beside && !along;
}

Expr extreme_over_threads(const Expr& e, bool greatest, const Launch& launch,
                          function_ref<bool(const Expr&)> is_uniform) {
  if (is_uniform(e)) return e;
  auto of = [&](const Expr& x, bool most) { return extreme_over_threads(x, most, launch, is_uniform); };
  if (const auto* v = e.as<Var>()) {
    for (size_t d = 0; d < launch.thread.size(); ++d)
      if (launch.thread[d] == v->id) return constant(e->type, greatest ? launch.threads[d] - 1 : int64_t{0});
    return {};
  }
  if (const auto* s = e.as<Sum>()) {
    std::vector<Term> terms;
    for (const Term& t : s->terms) {
      const Expr value = of(t.value, greatest == (t.coefficient > 0));
      if (!value) return {};
      terms.push_back({t.coefficient, value});
    }
    return sum(std::move(terms), s->constant, e->type);
  }
  if (const auto* c = e.as<Cast>()) {
    const DType from = c->value->type;
    const bool widens = from.is_int() && e->type.is_int() && from.is_signed() && e->type.bits >= from.bits;
    const Expr value = widens ? of(c->value, greatest) : Expr{};
    return value ? cast(value, e->type) : Expr{};
  }
  const auto* b = e.as<Binary>();
  if (!b) return {};
  if (b->op == BinaryOp::FloorDiv && constant_int(b->b).value_or(0) > 0) {
    const Expr value = of(b->a, greatest);
    return value ? binary(BinaryOp::FloorDiv, value, b->b) : Expr{};
  }
  if (b->op == BinaryOp::Min || b->op == BinaryOp::Max) {
    const Expr x = of(b->a, greatest), y = of(b->b, greatest);
    return x && y ? binary(b->op, x, y) : Expr{};
  }
  return {};
}

}  // namespace tilewright::passes
