// Maps that read a fragment at a distance, as in `map i { to[i] = part[i + at] }`, made maps over the fragment's own
// elements: those stay in the registers of the threads that have them.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// On canonical tile programs, for GPUs; leaves them so.
ir::TileProgram unshift_maps(ir::TileProgram program);

}  // namespace tilewright::passes
