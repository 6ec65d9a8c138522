// The order of a map's variables.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// A map whose fragments have its variables in another order than it says them gets theirs, where a fragment that would
// live in shared memory then stays in registers, no other goes there for it, and neighbours in memory are still moved
// by neighbours. Points of a map have no order.
void order_points(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
