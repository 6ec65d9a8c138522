// A launch with other threads, and steps of a loop, than the program's.
#pragma once
#include "analysis/half_steps.h"
#include "plan/plan.h"

namespace tilewright::passes {

// So many steps of the program's are one, or one is so many.
struct Ratio {
  int64_t times = 1, parts = 1;
  int64_t of(int64_t elements) const { return elements * times / parts; }
};
// A launch's body with the loop whose steps these are in others of that ratio; deep: as many bytes are under way as by
// its own. Tiles of other steps get new rows in the table.
void in_steps(ir::TileProgram& program, ir::Body& body, size_t loop, const analysis::HalfSteps& steps, Ratio ratio,
              bool deep);

// The launch under a fit that was found for it (plan/fit_registers.h, fit_steps.h). Needs canonical tile programs;
// leaves them so.
ir::Launch fitted(ir::TileProgram& program, const ir::Launch& launch, const plan::Fit& fit);

}  // namespace tilewright::passes
