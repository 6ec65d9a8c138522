// Conditions whose parts are computed all, and joined without a branch.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// C++ computes the right side of && and || only where the left one leaves it open, and of more than one comparison the
// device's compiler makes a branch, which lanes take apart. A right side that may be computed anywhere (registers in
// their bounds, no memory, no division by what may be zero) and does little is: & and | of bools.
void join_conditions(ir::ThreadProgram& program);

}  // namespace tilewright::passes
