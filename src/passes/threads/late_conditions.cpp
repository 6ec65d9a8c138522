#include "passes/threads/late_conditions.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kPredicates = 7;  // of a thread: as many conditions at once cost nothing

class Conditions {
 public:
  Conditions(ThreadProgram& p, size_t launch) : p_(p), number_(static_cast<int32_t>(launch)) {
    const Launch& l = p.launches[launch];
    if (l.thread.size() == 1) threads_.insert(l.thread[0]);
    walk(l.body, [&](const Stmt& s) {
      const auto* let = s.as<Let>();
      const auto* of = let ? let->value.as<Var>() : nullptr;
      if (of && threads_.contains(of->id)) threads_.insert(let->var);
    });
  }

  Body body(const Body& in, bool in_turns) {
    Body out;
    for (const Stmt& s : in) {
      const auto* loop = s.as<For>();
      const bool turns = in_turns || (loop && loop->kind == LoopKind::Serial);
      out.push_back(with_bodies(s, [&](const Body& inner) { return body(inner, turns); }));
    }
    return in_turns ? behind_waits(std::move(out)) : out;
  }

 private:
  static bool waits(const Stmt& s) {
    const auto* n = s.as<Drain>();
    return n && n->queue == Queue::Wgmma && !n->registers.empty();
  }
  Body behind_waits(Body in) {
    for (size_t i = in.size(); i-- > 0;) {
      if (!waits(in[i])) continue;
      size_t end = i + 1;
      while (end < in.size() && !waits(in[end])) ++end;
      const Body points(in.begin() + static_cast<std::ptrdiff_t>(i) + 1, in.begin() + static_cast<std::ptrdiff_t>(end));
      for (VarId thread : threads_) {
        if (count(points, thread) <= kPredicates) continue;
        const DType type = p_.var(thread).type;
        Buffer b;
        b.name = p_.var(thread).name + "_here", b.type = type, b.space = Space::Local, b.launch = number_;
        b.shape = {constant(i64, int64_t{1})};
        const BufferId here = p_.new_buffer(std::move(b));
        const std::vector<Expr> first{constant(i64, int64_t{0})};
        Drain wait = *in[i].as<Drain>();
        wait.registers.push_back({here, first, {constant(i64, int64_t{1})}});
        const Body asked = with(points, thread, load(here, first, type));
        std::copy(asked.begin(), asked.end(), in.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        const LocationId at = in[i]->location;
        in[i] = make_stmt(std::move(wait), at);
        in.insert(in.begin() + static_cast<std::ptrdiff_t>(i), make_stmt(Store{{here, first}, var(thread, type)}, at));
        break;
      }
    }
    return in;
  }

  // Whether the condition is one of that thread and of the turns of unrolled loops.
  static bool is_common(const Expr& condition, VarId thread, const std::map<VarId, int64_t>& points) {
    bool reads = false, asks = false, varies = false, other = false;
    walk(condition, [&](const Expr& e) {
      reads = reads || e.as<Load>() || e.as<Intrinsic>();
      const auto* v = e.as<Var>();
      if (!v) return;
      asks = asks || v->id == thread, varies = varies || points.contains(v->id);
      other = other || (v->id != thread && !points.contains(v->id));
    });
    return asks && varies && !reads && !other;
  }
  static int64_t points_of(const Expr& condition, const std::map<VarId, int64_t>& points) {
    int64_t out = 1;
    for (VarId v : used_vars(condition))
      if (const auto found = points.find(v); found != points.end()) out *= found->second;
    return out;
  }
  template <class F>
  static void each_condition(const Body& body, VarId thread, std::map<VarId, int64_t> points, const F& f) {
    for (const Stmt& s : body) {
      const auto* loop = s.as<For>();
      const auto extent = loop && loop->kind == LoopKind::Unroll ? constant_int(loop->extent) : std::nullopt;
      std::map<VarId, int64_t> inside = points;
      if (extent) inside[loop->var] = *extent;
      const auto look = [&](const Expr& condition) {
        if (is_common(condition, thread, points)) f(condition, points);
      };
      if (const auto* branch = s.as<If>()) look(branch->condition);
      for_each_expr(s, [&](const Expr& outer) {
        walk(outer, [&](const Expr& e) {
          if (const auto* select = e.as<Select>()) look(select->condition);
        });
      });
      for_each_body(s, [&](const Body& inner) { each_condition(inner, thread, inside, f); });
    }
  }
  static int64_t count(const Body& body, VarId thread) {
    int64_t out = 0;
    each_condition(body, thread, {},
                   [&](const Expr& e, const std::map<VarId, int64_t>& points) { out += points_of(e, points); });
    return out;
  }
  static Body with(const Body& body, VarId thread, const Expr& here) {
    std::vector<Expr> common;
    each_condition(body, thread, {}, [&](const Expr& e, const auto&) { common.push_back(e); });
    const auto asked = [&](const Expr& condition) {
      const bool known = std::ranges::any_of(common, [&](const Expr& e) { return equal(e, condition); });
      return known ? substitute(condition, {{thread, here}}) : condition;
    };
    const Body choices = rewrite_exprs(body, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Select>();
      return n ? std::optional(select(asked(n->condition), n->a, n->b)) : std::nullopt;
    });
    return rewrite(choices, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = s.as<If>();
      if (!n) return std::nullopt;
      return Body{make_stmt(If{asked(n->condition), n->then_body, n->else_body}, s->location)};
    });
  }

  ThreadProgram& p_;
  const int32_t number_;
  std::set<VarId> threads_;
};

}  // namespace

void late_conditions(ThreadProgram& program) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    program.launches[i].body = Conditions(program, i).body(program.launches[i].body, false);
}

}  // namespace tilewright::passes
