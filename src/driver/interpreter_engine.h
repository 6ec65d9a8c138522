// The reference interpreter behind an Executable.
#pragma once
#include "ir/program.h"
#include "runtime/executable.h"

namespace tilewright {

// The program's symbols are in the order of the plan.
std::unique_ptr<runtime::Callee> interpreter_callee(ir::TileProgram program);

}  // namespace tilewright
