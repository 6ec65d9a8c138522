#include "passes/known_conditions.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

using namespace ir;

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
