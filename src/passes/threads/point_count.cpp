#include "passes/threads/point_count.h"

#include <algorithm>

#include "ir/operators.h"

namespace tilewright::passes {

using namespace ir;

Expr point_count(const std::vector<Expr>& extents, Lowering& l) {
  const auto may_be_negative = [&](const Expr& e) { return l.intervals.of(widen(e)).low < 0; };
  const bool several = std::count_if(extents.begin(), extents.end(), may_be_negative) > 1;
  Expr count = wide(1);
  for (const Expr& e : extents)
    count = mul(count, several && may_be_negative(e) ? binary(BinaryOp::Max, widen(e), wide(0)) : widen(e));
  return count;
}

}  // namespace tilewright::passes
