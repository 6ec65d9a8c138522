#include "passes/threads/share_values.h"

#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/registers.h"
#include "scalar/functions.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Sharing {
 public:
  Sharing(ThreadProgram& program, const Launch& launch) : program_(program), ranges_(ranges_in(launch)) {
    find_conditional(launch.body, false);
  }

  // Loops before those inside of them: a value goes as far out as it may.
  Body body(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      const auto* loop = s.as<For>();
      const Stmt rest = loop && loop->kind == LoopKind::Unroll ? without_common_values(*loop, s->location, out) : s;
      out.push_back(with_bodies(rest, [&](const Body& inner) { return body(inner); }));
    }
    return out;
  }

 private:
  // Buffers that some threads do not store to, where others do: there is nothing in theirs to compute with.
  void find_conditional(const Body& body, bool is_conditional) {
    for (const Stmt& s : body) {
      if (is_conditional)
        for (const Effect& e : effects_of(s).list)
          if (e.region.valid() && e.access != Access::Read) conditional_.insert(program_.root(e.region.buffer));
      const bool inside = is_conditional || s.as<If>() || s.as<While>() || may_jump({s});
      for_each_body(s, [&](const Body& inner) { find_conditional(inner, inside); });
    }
  }
  Stmt without_common_values(const For& loop, LocationId at, Body& before) {
    std::vector<std::pair<Expr, Expr>> values;  // and their names
    for (const Expr& e : common_values(loop)) {
      const VarId v = program_.new_var("common", e->type);
      before.push_back(make_stmt(Let{v, e}, at));
      values.emplace_back(e, var(v, e->type));
    }
    For f = loop;
    f.body = rewrite_exprs(f.body, [&](const Expr& e) -> std::optional<Expr> {
      for (const auto& [value, name] : values)
        if (equal(value, e)) return name;
      return std::nullopt;
    });
    return make_stmt(std::move(f), at);
  }
  // The largest expressions of the loop that take long and have one value in all of its turns.
  std::vector<Expr> common_values(const For& loop) const {
    std::set<VarId> inside = bound_vars(loop.body);
    inside.insert(loop.var);
    const std::set<BufferId> changed = changed_roots(loop.body, program_);
    std::vector<Expr> out;
    const auto look = [&](const auto& self, const Expr& e) -> void {
      if (takes_long(e) && is_common(e, inside, changed)) {
        if (std::ranges::none_of(out, [&](const Expr& known) { return equal(known, e); })) out.push_back(e);
        return;
      }
      for_each_operand(e, [&](const Expr& part) { self(self, part); });
    };
    walk(loop.body, [&](const Stmt& s) { for_each_expr(s, [&](const Expr& e) { look(look, e); }); });
    return out;
  }
  static bool takes_long(const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const auto* division = x.as<Binary>();
      const auto* call = x.as<Intrinsic>();
      found = found || (division && division->op == BinaryOp::Div && x->type.is_float()) ||
              (call && (call->function == Function::Fmod || call->function == Function::Sqrt ||
                        call->function == Function::Rcp || call->function == Function::RsqrtRn ||
                        call->function >= Function::Exp));
    });
    return found && e->type.is_float();
  }
  bool is_common(const Expr& e, const std::set<VarId>& inside, const std::set<BufferId>& changed) const {
    for (const VarId v : used_vars(e))
      if (inside.contains(v)) return false;
    bool reads = false, common = true;
    walk(e, [&](const Expr& x) {
      const auto* n = x.as<Load>();
      reads = reads || n || x.as<Var>();
      common = common && !x.as<Address>() && is_of_floats(x);
      if (!n) return;
      const BufferId root = program_.root(n->buffer);
      common =
          common && !changed.contains(root) && !conditional_.contains(root) && is_in_registers(program_, *n, ranges_);
    });
    return reads && common;
  }
  // Floats may be computed where no point asks for them. Integers that no type holds, and divisors that may be 0, not.
  static bool is_of_floats(const Expr& x) {
    const auto* cast = x.as<Cast>();
    const auto* n = x.as<Binary>();
    const bool divides = n && x->type.is_int() &&
                         (n->op == BinaryOp::FloorDiv || n->op == BinaryOp::FloorMod || n->op == BinaryOp::TruncDiv ||
                          n->op == BinaryOp::TruncMod);
    return !(cast && cast->value->type.is_float() && !x->type.is_float()) &&
           !(divides && constant_int(n->b).value_or(0) <= 0);
  }

  ThreadProgram& program_;
  const Intervals ranges_;
  std::set<BufferId> conditional_;
};

}  // namespace

void share_values(ThreadProgram& program) {
  for (Launch& launch : program.launches) launch.body = Sharing(program, launch).body(launch.body);
}

}  // namespace tilewright::passes
