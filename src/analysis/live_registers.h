// How many registers the fragments of a launch take at a time.
#pragma once
#include "analysis/half_steps.h"

namespace tilewright::analysis {

// That a thread's part of the fragments takes where most of them are alive at a time, of so many threads and with steps
// of a loop that are halved; null: steps are whole.
int64_t live_registers(const ir::ProgramTables& program, const ir::Launch& launch, int64_t threads,
                       const HalfSteps* halves = nullptr);

// Bits of registers that those of the buffers take which are fragments.
int64_t bits_of_fragments(const std::set<ir::BufferId>& buffers, const ir::ProgramTables& program);

}  // namespace tilewright::analysis
