#include "passes/tile/inline_lets.h"

#include "ir/buffer_vars.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool is_linear(const Expr& e) {
  if (!e->type.is_int()) return false;
  if (e.as<Var>() || e.as<Const>()) return true;
  const auto* s = e.as<ir::Sum>();
  return s && std::all_of(s->terms.begin(), s->terms.end(), [](const Term& t) { return is_linear(t.value); });
}

}  // namespace

TileProgram inline_lets(TileProgram program) {
  const std::set<VarId> of_buffers = vars_of_buffers(program);
  for (Launch& launch : program.launches) {
    Substitution values;
    walk(launch.body, [&](const Stmt& s) {
      const auto* let = s.as<Let>();
      if (let && is_linear(let->value) && !of_buffers.contains(let->var))
        values[let->var] = substitute(let->value, values);
    });
    if (values.empty()) continue;
    const Body without = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* let = s.as<Let>();
      return let && values.contains(let->var) ? std::optional(Body{}) : std::nullopt;
    });
    launch.body = substitute(without, values);
  }
  return program;
}

}  // namespace tilewright::passes
