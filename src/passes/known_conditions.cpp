#include "passes/known_conditions.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {
namespace {

using namespace ir;

// Of begin, begin + 1, ..., begin + extent - 1, where the last of them is one of the type's.
Interval range_of_loop(Interval begin, Interval extent, DType type) {
  const Interval all = range_of_type(type);
  return {begin.low, std::clamp(begin.high + extent.high - 1, begin.low, all.high)};
}

}  // namespace

// A variable has one statement that binds it, so what it can be holds wherever it is seen.
Intervals ranges_in(const Launch& launch) {
  Intervals out;
  for (size_t d = 0; d < launch.grid.size(); ++d)
    out.set(launch.block[d], range_of_loop({0, 0}, out.of(launch.grid[d]), i32));
  for (size_t d = 0; d < launch.threads.size(); ++d) out.set(launch.thread[d], {0, launch.threads[d] - 1});
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* n = s.as<For>()) {
      out.set(n->var, range_of_loop(out.of(n->begin), out.of(n->extent), n->begin->type));
    } else if (const auto* n = s.as<Map>()) {
      for (size_t d = 0; d < n->vars.size(); ++d)
        out.set(n->vars[d], range_of_loop({0, 0}, out.of(n->extents[d]), n->extents[d]->type));
    } else if (const auto* n = s.as<Let>(); n && n->value->type.is_integral()) {
      const auto known = out.decides(n->value);
      out.set(n->var, known ? Interval{*known, *known} : out.of(n->value));
    }
  });
  return out;
}

void decide_known_conditions(Launch& launch) {
  const Intervals ranges = ranges_in(launch);
  launch.body = rewrite_exprs(launch.body, [&](const Expr& e) -> std::optional<Expr> {
    if (!e->type.is_bool()) return std::nullopt;
    const Interval one = ranges.of(e);
    if (e.as<Var>() && one.low == one.high) return constant(boolean, one.low);
    const auto known = ranges.decides(e);
    return known ? std::optional(constant(boolean, int64_t{*known})) : std::nullopt;
  });
}

}  // namespace tilewright::passes
