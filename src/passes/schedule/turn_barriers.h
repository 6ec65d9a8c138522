// mbarriers of a program's own on which two roles take turns.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Gives them their use: Turn. Pairs of no known use, one for each of two roles, of which each arrives with all its
// warps at its own and waits for the other's, in turn; one of them begins with the arrival, the other with the wait.
void find_turn_barriers(ir::ProgramTables& program, const ir::Launch& launch);

}  // namespace tilewright::passes
