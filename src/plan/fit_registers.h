// Fewer registers a thread, where the program's threads and steps would make the device compiler spill.
#pragma once
#include "plan/hints.h"

namespace tilewright::plan {

// Steps half as long (analysis/half_steps.h), two warpgroups where the program has one, or both, where its own tiles
// want more than `most` registers a thread, or as the hints fix. Nothing: the launch stays as it is.
Fit fit_registers(const ir::ProgramTables& program, const ir::Launch& launch, int64_t most, const Hints& hints = {});

}  // namespace tilewright::plan
