// Values that all points of a thread have in common.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Quotients and functions of registers that the turns of an unrolled loop compute alike are computed once, before it.
// The device's compiler finds them to be one only where no condition stands between the turns: rows whose length the
// threads do not divide have one around each.
void share_values(ir::ThreadProgram& program);

}  // namespace tilewright::passes
