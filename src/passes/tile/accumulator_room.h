// Registers that accumulators of products take of a thread, and those that it can have.
#pragma once
#include <set>

#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// The fragments that products of the launch add to.
std::set<ir::BufferId> accumulators_of(const ir::Launch& launch);
// Of a thread, what all accumulators of the launch's products take.
int64_t accumulator_registers(const ir::ProgramTables& program, const ir::Launch& launch);
// Of a thread that computes, beside a loader where the target has them, in a block that has a multiprocessor to itself.
int64_t most_registers(const ir::Launch& launch, const target::GpuTarget& target);

}  // namespace tilewright::passes
