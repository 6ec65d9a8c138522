#include "passes/schedule/narrow_steps.h"

#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "plan/half_steps.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::slope;

namespace {

class Halver {
 public:
  Halver(TileProgram& p, const For& loop, const plan::HalfSteps& halves) : p_(p), loop_(loop), halves_(halves) {}

  Stmt run(LocationId at) {
    For f = loop_;
    const DType type = p_.var(loop_.var).type;
    const Expr two = constant(type, int64_t{2});
    f.var = p_.new_var(p_.var(loop_.var).name, type);
    f.begin = mul(loop_.begin, two), f.extent = mul(loop_.extent, two);
    std::map<BufferId, BufferId> tiles;
    for (const auto& [id, dim] : halves_.cut) {
      Buffer b = p_.buffer(id);
      b.shape[dim] = constant(b.shape[dim]->type, halves_.step / 2);
      tiles[id] = p_.new_buffer(std::move(b));
    }
    f.body = rewrite(loop_.body, [&](const Stmt& s) -> std::optional<Body> { return half_of(s); });
    f.body = rewrite_exprs(f.body, [&](const Expr& e) { return half_step(e, var(f.var, type)); });
    f.body = with_buffers(f.body, tiles);
    return make_stmt(std::move(f), at);
  }

 private:
  bool uses_step(const Expr& e) const { return used_vars(e).contains(loop_.var); }
  bool is_global(BufferId id) const { return p_.buffer(p_.root(id)).space == Space::Global; }
  std::optional<Body> half_of(const Stmt& s) const {
    if (const auto* n = s.as<Map>()) {
      Map m = *n;
      for (size_t i = 0; i < m.vars.size(); ++i)
        if (halves_.cut_vars.contains(m.vars[i])) m.extents[i] = constant(m.extents[i]->type, halves_.step / 2);
      return Body{make_stmt(std::move(m), s->location)};
    }
    auto half = [&](Region r) {
      const auto dim = halves_.cut_of(r.buffer);
      if (dim) r.extent[*dim] = constant(r.extent[*dim]->type, halves_.step / 2);
      for (size_t d = 0; !dim && is_global(r.buffer) && d < r.min.size(); ++d)
        if (uses_step(r.min[d])) r.extent[d] = constant(r.extent[d]->type, halves_.step / 2);
      return r;
    };
    auto with = [&](auto op) { return Body{make_stmt(std::move(op), s->location)}; };
    if (const auto* n = s.as<Copy>()) {
      Copy c = *n;
      c.from = half(c.from), c.to = half(c.to);
      return with(std::move(c));
    }
    if (const auto* n = s.as<Gemm>()) {
      Gemm g = *n;
      g.a = half(g.a), g.b = half(g.b), g.c = half(g.c);
      return with(std::move(g));
    }
    if (const auto* n = s.as<Fill>()) {
      Fill f = *n;
      f.to = half(f.to);
      return with(std::move(f));
    }
    if (const auto* n = s.as<Reduce>()) {
      Reduce r = *n;
      r.from = half(r.from), r.to = half(r.to);
      return with(std::move(r));
    }
    return std::nullopt;
  }
  // Sums in which the old variable stands for whole steps.
  std::optional<Expr> half_step(const Expr& e, const Expr& step) const {
    const auto* n = e.as<ir::Sum>();
    if (!n || slope(e, loop_.var).value_or(0) == 0) return std::nullopt;
    std::vector<Term> terms = n->terms;
    for (Term& t : terms)
      if (const auto* v = t.value.as<Var>(); v && v->id == loop_.var) t.coefficient /= 2, t.value = step;
    return sum(std::move(terms), n->constant, e->type);
  }

  TileProgram& p_;
  const For& loop_;
  const plan::HalfSteps& halves_;
};

}  // namespace

Launch fitted(TileProgram& program, const Launch& launch, const plan::Fit& fit) {
  Launch out = launch;
  for (size_t i = 0; fit.half_steps_of.valid() && i < launch.body.size(); ++i) {
    const auto* loop = launch.body[i].as<For>();
    if (!loop || loop->var != fit.half_steps_of) continue;
    const auto halves = plan::half_steps(program, launch, i);
    check_internal(halves.has_value(), "a loop whose steps could be halved cannot be");
    out.body[i] = Halver(program, *loop, *halves).run(launch.body[i]->location);
  }
  if (fit.threads > 0) out.threads[0] = fit.threads;
  return out;
}

}  // namespace tilewright::passes
