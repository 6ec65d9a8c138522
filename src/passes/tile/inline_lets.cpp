#include "passes/tile/inline_lets.h"

#include "ir/buffer_vars.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
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

// What variables of the launch can be, as far as extents say.
Intervals intervals_of(const Launch& launch) {
  Intervals out;
  const auto counts = [&](VarId v, const Expr& begin, const Expr& extent) {
    const Interval first = out.of(begin), n = out.of(extent);
    out.set(v, {first.low, first.high + std::max<int64_t>(n.high, 1) - 1});
  };
  const Expr zero = constant(0);
  for (size_t d = 0; d < launch.grid.size(); ++d) counts(launch.block[d], zero, launch.grid[d]);
  for (size_t d = 0; d < launch.threads.size(); ++d) out.set(launch.thread[d], {0, launch.threads[d] - 1});
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* n = s.as<For>()) counts(n->var, n->begin, n->extent);
    if (const auto* n = s.as<Let>()) out.set(n->var, out.of(n->value));
    if (const auto* n = s.as<Map>())
      for (size_t d = 0; d < n->vars.size(); ++d) counts(n->vars[d], zero, n->extents[d]);
  });
  return out;
}

// A name's value wraps around its type; as a part of an index, which does not, it would be another.
bool stays_in_type(const Expr& value, const Intervals& intervals) {
  const Interval wide = intervals.of(widen(value)), type = range_of_type(value->type);
  return wide.low >= type.low && wide.high <= type.high;
}

}  // namespace

TileProgram inline_lets(TileProgram program) {
  const std::set<VarId> of_buffers = vars_of_buffers(program);
  for (Launch& launch : program.launches) {
    Substitution values;
    const Intervals intervals = intervals_of(launch);
    walk(launch.body, [&](const Stmt& s) {
      const auto* let = s.as<Let>();
      if (!let || !is_linear(let->value) || of_buffers.contains(let->var)) return;
      if (Expr value = substitute(let->value, values); stays_in_type(value, intervals))
        values[let->var] = std::move(value);
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
