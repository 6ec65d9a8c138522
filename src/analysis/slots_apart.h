// Whether two indices are those of different slots of a ring.
#pragma once
#include "ir/expr.h"

namespace tilewright::analysis {

// x mod s and y mod s, where y - x is a constant that s does not divide: slots of a ring in one iteration, if all
// threads agree on x and y.
bool are_other_slots(const ir::Expr& a, const ir::Expr& b);

}  // namespace tilewright::analysis
