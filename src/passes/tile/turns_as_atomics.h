// Turns at the elements of a tile, made points that add to them atomically where a fragment lies over the threads:
// `map point in 1 { for i in 0..64 { for j in 0..64 { r[i % 8] = r[i % 8] + part[i, j] } } }` would have one thread
// read all of `part`, which then could not stay in registers.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// On canonical tile programs, for GPUs; leaves them so. What is added to becomes a shared buffer.
ir::TileProgram turns_as_atomics(ir::TileProgram program);

}  // namespace tilewright::passes
