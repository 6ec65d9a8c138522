// How many blocks run beside each other.
#pragma once
#include <set>

#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::plan {

// Bits of registers that those of the buffers take which are fragments.
int64_t bits_of_fragments(const std::set<ir::BufferId>& buffers, const ir::ProgramTables& program);

// Blocks without roles that a multiprocessor has room for: for their threads, for the registers of their tiles, for
// their shared tiles with the stages of pipelined loops.
int64_t blocks_beside(const ir::ProgramTables& program, const ir::Launch& launch, const target::GpuTarget& target);

}  // namespace tilewright::plan
