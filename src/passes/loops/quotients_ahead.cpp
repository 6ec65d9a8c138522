#include "passes/loops/quotients_ahead.h"

#include <algorithm>

#include "ir/names.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool is_quotient(const Expr& e) {
  const auto* n = e.as<Binary>();
  return n && e->type.is_int() && (n->op == BinaryOp::FloorDiv || n->op == BinaryOp::FloorMod) && !constant_int(n->b);
}

class QuotientsAhead {
 public:
  explicit QuotientsAhead(LoopProgram& program) : program_(program) {}

  // The loops inside first: what goes before one may go before the next as well.
  Body run(const Body& body) {
    Body out;
    for (const Stmt& s : body) {
      const auto* f = s.as<For>();
      if (!f) {
        out.push_back(with_bodies(s, [&](const Body& b) { return run(b); }));
        continue;
      }
      For loop = *f;
      if (loop.lanes == 0) loop.body = run(loop.body);
      for (const auto& [name, value] : take(loop)) out.push_back(make_stmt(Let{name, value}, s->location));
      out.push_back(make_stmt(std::move(loop), s->location));
    }
    return out;
  }

 private:
  std::vector<std::pair<VarId, Expr>> take(For& loop) {
    std::vector<std::pair<VarId, Expr>> taken;
    std::set<VarId> inside = bound_vars(loop.body);
    inside.insert(loop.var);
    Substitution names;
    walk(loop.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Let>(); n && n->value->type.is_int())
        if (const auto value = spelled_out(n->value, names)) names[n->var] = *value;
    });
    loop.body = rewrite_exprs(loop.body, [&](const Expr& e) -> std::optional<Expr> {
      if (!is_quotient(e)) return std::nullopt;
      const auto value = spelled_out(e, names);
      if (!value || uses_any(*value, inside)) return std::nullopt;
      bool pure = true;
      walk(*value, [&](const Expr& x) { pure = pure && !x.as<Load>() && !x.as<Intrinsic>(); });
      if (!pure) return std::nullopt;
      for (const auto& [name, known] : taken)
        if (equal(known, *value)) return var(name, e->type);
      taken.emplace_back(program_.new_var("quotient", e->type), *value);
      return var(taken.back().first, e->type);
    });
    return taken;
  }

  LoopProgram& program_;
};

}  // namespace

LoopProgram quotients_ahead(LoopProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    for (Stmt& s : program.launches[i].body) {
      const auto* f = s.as<For>();
      if (!f) continue;
      For grid = *f;
      const LocationId at = s->location;
      grid.body = QuotientsAhead(program).run(grid.body);
      s = make_stmt(std::move(grid), at);
    }
  }
  return program;
}

}  // namespace tilewright::passes
