// Fewer registers a thread, where the program's threads and steps would make the device compiler spill.
#pragma once
#include "plan/hints.h"
#include "target/gpu.h"

namespace tilewright::plan {

// Steps half as long (analysis/half_steps.h), two warpgroups where the program has one, or both, where its own tiles
// want more than `most` registers a thread, or as the hints fix. Nothing: the launch stays as it is.
Fit fit_registers(const ir::ProgramTables& program, const ir::Launch& launch, int64_t most, const Hints& hints = {});

// As few threads as have not too many registers for one of `parts` of the columns of the launch's tiles; no more than
// the program has, and as many where it counts them.
int64_t fewest_threads(const ir::ProgramTables& program, const ir::Launch& launch, int64_t parts = 1);
// So many for a launch that reduces tiles without products: threads of few elements wait for each other at each
// reduction, and leave other blocks no room (an H200, softmax of 8,192 columns: 0.35 of a copy by 1,024 threads, 0.73
// by 512, 0.96 by 256, 0.99 by 128; of 16,384 by 128 threads 0.70, by 256 0.88; bench/results/2026-11-30-rows.json).
Fit fit_rows(const ir::ProgramTables& program, const ir::Launch& launch, const target::GpuTarget& target,
             const Hints& hints);

}  // namespace tilewright::plan
