// Fragments that are smaller than the maps that go through them.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A fragment that would surely be left, and is touched by nothing but element accesses at the variables of maps, as
// many in each of its dimensions everywhere, gets an element for each of those points, with a warning. A point then
// finds what the same point wrote: on a GPU, what its thread holds in registers.
ir::TileProgram grow_fragments(ir::TileProgram program);

}  // namespace tilewright::passes
