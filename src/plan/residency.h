// How many blocks run beside each other.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::plan {

// Blocks without roles that a multiprocessor has room for: for their threads, for the registers of their tiles, for
// their shared tiles with the stages of pipelined loops.
int64_t blocks_beside(const ir::ProgramTables& program, const ir::Launch& launch, const target::GpuTarget& target);

}  // namespace tilewright::plan
