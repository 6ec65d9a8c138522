// Loops in which a block waits for what another one writes.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// How many blocks of a launch are to be under way at a time: as many as a device holds where a loop reads global memory
// that the launch writes and changes nothing but memory of its block, as one that waits for a later block does; else 1.
int64_t blocks_that_wait(const ir::ProgramTables& program, const ir::Launch& launch);

}  // namespace tilewright::analysis
