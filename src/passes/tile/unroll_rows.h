// Loops whose turns take one part of a fragment after the other.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// A loop around nothing but maps, by whose variable a fragment is indexed beside the variables of a map, becomes its
// turns: a register has no address, and which one a turn takes is known of constants alone. Only where fragments
// that would live in shared memory then stay in registers, and no other goes there for it.
void unroll_rows(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
