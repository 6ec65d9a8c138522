// Fragments that do nothing but bring operands from global memory to products.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Such a fragment is a tile of shared memory, where there is room for it: rings bring those ahead of their turns, and
// matrix instructions read them there. Of launches that schedule themselves none is.
void operands_in_shared(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
