// Loads that need not wait for their own turn.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// In pipelined loops with a gemm, floats and masks that code beside it reads from global memory, as values or as
// fragments of at most a few elements a thread, are loaded a turn before: TMA's copies come early, and a load in
// between would have the product wait for memory. What lies by what the turn before loaded is loaded behind the turn's
// product, where that runs beside other code (`aside`). Needs canonical tile programs; leaves them so.
ir::TileProgram load_ahead(ir::TileProgram program, bool aside);

}  // namespace tilewright::passes
