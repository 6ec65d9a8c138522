// Fewer registers a thread, where the program's threads and steps would make the device compiler spill.
#pragma once
#include <string>

#include "ir/program.h"

namespace tilewright::passes {

// Registers that a thread's part of the fragments takes where most of them are alive at a time.
int64_t live_registers(const ir::ProgramTables& program, const ir::Launch& launch);

// The launch with steps half as long (narrow_steps.h), two warpgroups where the program has one, or both, if its own
// tiles want more than `most` registers a thread; says what was done. Empty: it stays as it is.
std::string fit_registers(ir::TileProgram& program, ir::Launch& launch, int64_t most);

}  // namespace tilewright::passes
