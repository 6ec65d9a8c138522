// Jumps that end a turn of a loop before its last statement.
#pragma once
#include "ir/program.h"

namespace tilewright::ir {

// Whether a break or continue of the loop that has this body, or a return, stands in it: then what stands at its end is
// not done in every turn, and not all turns are taken.
bool may_jump(const Body& loop_body);

}  // namespace tilewright::ir
