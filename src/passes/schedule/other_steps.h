// A launch with other threads, and steps of a loop, than the program's.
#pragma once
#include "plan/plan.h"

namespace tilewright::passes {

// The launch under a fit that was found for it (plan/fit_registers.h, fit_steps.h). Tiles of other steps get new rows
// in the table. Needs canonical tile programs; leaves them so.
ir::Launch fitted(ir::TileProgram& program, const ir::Launch& launch, const plan::Fit& fit);

}  // namespace tilewright::passes
