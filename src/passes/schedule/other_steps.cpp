#include "passes/schedule/other_steps.h"

#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::slope;

namespace {

constexpr int64_t kFewestSlots = 4;  // of steps of products: fewer lose speed

class Stepper {
 public:
  Stepper(TileProgram& p, const For& loop, const analysis::HalfSteps& steps, Ratio ratio, bool deep)
      : p_(p), loop_(loop), steps_(steps), ratio_(ratio), step_(ratio.of(steps.step)), deep_(deep) {}

  Stmt run(LocationId at) {
    For f = loop_;
    const DType type = p_.var(loop_.var).type;
    const Expr parts = constant(type, ratio_.parts), times = constant(type, ratio_.times);
    f.var = p_.new_var(p_.var(loop_.var).name, type);
    f.begin = mul(loop_.begin, parts);  // 0 where steps are wide
    f.extent = binary(BinaryOp::FloorDiv, add(mul(loop_.extent, parts), sub(times, constant(type, int64_t{1}))), times);
    if (deep_) f.stages = std::max(kFewestSlots, (loop_.stages * ratio_.parts + ratio_.times - 1) / ratio_.times);
    for (const auto& [id, dim] : steps_.cut) {
      Buffer b = p_.buffer(id);
      b.shape[dim] = constant(b.shape[dim]->type, step_);
      tiles_[id] = p_.new_buffer(std::move(b));
    }
    f.body = rewrite(loop_.body, [&](const Stmt& s) -> std::optional<Body> { return of_step(s); });
    f.body = rewrite_exprs(f.body, [&](const Expr& e) { return with_step(e, var(f.var, type)); });
    f.body = with_buffers(f.body, tiles_);
    return make_stmt(std::move(f), at);
  }
  // Behind run(): a statement elsewhere, which fills what no step brings of a tile.
  Stmt beside(const Stmt& s) const {
    const auto* n = s.as<Fill>();
    return n && steps_.cut_of(n->to.buffer) ? with_buffers(*of_step(s), tiles_)[0] : s;
  }

 private:
  bool uses_step(const Expr& e) const { return used_vars(e).contains(loop_.var); }
  bool is_global(BufferId id) const { return p_.buffer(p_.root(id)).space == Space::Global; }
  std::optional<Body> of_step(const Stmt& s) const {
    if (const auto* n = s.as<Map>()) {
      Map m = *n;
      for (size_t i = 0; i < m.vars.size(); ++i)
        if (steps_.cut_vars.contains(m.vars[i])) m.extents[i] = constant(m.extents[i]->type, step_);
      return Body{make_stmt(std::move(m), s->location)};
    }
    auto cut = [&](Region r) {
      const auto dim = steps_.cut_of(r.buffer);
      if (dim) r.extent[*dim] = constant(r.extent[*dim]->type, step_);
      for (size_t d = 0; !dim && is_global(r.buffer) && d < r.min.size(); ++d)
        if (uses_step(r.min[d])) r.extent[d] = constant(r.extent[d]->type, step_);
      return r;
    };
    auto with = [&](auto op) { return Body{make_stmt(std::move(op), s->location)}; };
    if (const auto* n = s.as<Copy>()) {
      Copy c = *n;
      c.from = cut(c.from), c.to = cut(c.to);
      return with(std::move(c));
    }
    if (const auto* n = s.as<Gemm>()) {
      Gemm g = *n;
      g.a = cut(g.a), g.b = cut(g.b), g.c = cut(g.c);
      return with(std::move(g));
    }
    if (const auto* n = s.as<Fill>()) {
      Fill f = *n;
      f.to = cut(f.to);
      return with(std::move(f));
    }
    if (const auto* n = s.as<Reduce>()) {
      Reduce r = *n;
      r.from = cut(r.from), r.to = cut(r.to);
      return with(std::move(r));
    }
    return std::nullopt;
  }
  // Sums in which the old variable stands for whole steps.
  std::optional<Expr> with_step(const Expr& e, const Expr& step) const {
    const auto* n = e.as<ir::Sum>();
    if (!n || slope(e, loop_.var).value_or(0) == 0) return std::nullopt;
    std::vector<Term> terms = n->terms;
    for (Term& t : terms)
      if (const auto* v = t.value.as<Var>(); v && v->id == loop_.var)
        t.coefficient = ratio_.of(t.coefficient), t.value = step;
    return sum(std::move(terms), n->constant, e->type);
  }

  TileProgram& p_;
  const For& loop_;
  const analysis::HalfSteps& steps_;
  const Ratio ratio_;
  const int64_t step_;                  // elements of tensors that the loop walks over in one of its steps now
  std::map<BufferId, BufferId> tiles_;  // of steps as they are now
  const bool deep_;                     // as many bytes are under way as by the program's steps
};

}  // namespace

void in_steps(TileProgram& program, Body& body, size_t loop, const analysis::HalfSteps& steps, Ratio ratio, bool deep) {
  const Stmt own = body[loop];
  Stepper stepper(program, *own.as<For>(), steps, ratio, deep);
  body[loop] = stepper.run(own->location);
  for (Stmt& s : body) s = stepper.beside(s);
}

Launch fitted(TileProgram& program, const Launch& launch, const plan::Fit& fit) {
  Launch out = launch;
  for (size_t i = 0; i < launch.body.size(); ++i) {
    const auto* loop = launch.body[i].as<For>();
    const bool halves = loop && loop->var == fit.half_steps_of;
    if (!halves && !(loop && loop->var == fit.wide_steps_of)) continue;
    const auto steps = halves ? analysis::half_steps(program, launch, i) : analysis::product_steps(program, launch, i);
    check_internal(steps.has_value(), "a loop whose steps could be others cannot have them");
    const Ratio ratio = halves ? Ratio{1, 2} : Ratio{fit.at_once, 1};
    in_steps(program, out.body, i, *steps, ratio, fit.live == 0 || fit.at_once > 1);
  }
  if (fit.threads > 0) out.threads[0] = fit.threads;
  return out;
}

}  // namespace tilewright::passes
