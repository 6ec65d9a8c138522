// How many points a box has.
#pragma once
#include "passes/lower/lowering.h"

namespace tilewright::passes {

// The product of the extents, as int64. Where several may be negative it is 0 if one of them is: two would make a
// positive number.
ir::Expr point_count(const std::vector<ir::Expr>& extents, Lowering& l);

}  // namespace tilewright::passes
