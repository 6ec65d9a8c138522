// Quotients and remainders by what is no constant, which are the same in all iterations of a loop, are found before it:
// compilers take them into vectors, where they have no instruction.
//
// Needs: a LoopProgram after choose_lanes().
// Leaves: the same results: a quotient by zero is none that stops.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

ir::LoopProgram quotients_ahead(ir::LoopProgram program);

}  // namespace tilewright::passes
