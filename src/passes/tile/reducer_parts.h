// Reducers in registers: the points of a map contribute to a tile of their own, which a Reduce adds up, where each
// would else change an element in memory by an atomic.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Copy and Fill are there. Reducers whose every contribution is of a map over constant extents that names each of their
// elements by its variables, and of the same threads, become plain fragments; the others stay as they are.
ir::TileProgram reducers_to_reductions(ir::TileProgram program);

}  // namespace tilewright::passes
