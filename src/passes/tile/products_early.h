// Products that begin before other code of their turn.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// In pipelined loops of several products that wgmma does, a product comes in front of code that computes and that it
// has nothing to do with (late_waits.h lets it run on beside that), with what brings its operands. Of two products, the
// one whose result is not used before the next turn comes behind the one whose result is, where more is done with that
// than stands between them, and no other product runs beside it. No turn needs more registers than before; where they
// would not hold all results, a product comes right before what is made of its. Needs canonical tile programs; leaves
// them so.
void products_early(ir::TileProgram& program, const target::GpuTarget& target);

}  // namespace tilewright::passes
