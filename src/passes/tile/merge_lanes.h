// Loops in the points of a map that run over neighbours, as in `map i in 8 { for v in 0..4 { f[i * 4 + v] = .. } }`,
// made points: a fragment that is indexed by a variable of the map alone stays in registers.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// On canonical tile programs, for GPUs; leaves them so. Turns that use what other turns write stay turns.
ir::TileProgram merge_lanes(ir::TileProgram program);

}  // namespace tilewright::passes
