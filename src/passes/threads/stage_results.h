// Results that leave the chip by TMA.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Copies of whole fragments to global memory go through a copy in shared memory, where TMA can take them from there.
// `staged` gets the names of the fragments.
ir::Body stage_results(ir::TileProgram& program, ir::Body body, std::vector<std::string>& staged);

}  // namespace tilewright::passes
