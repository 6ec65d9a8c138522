// Fragments that are smaller than the maps that go through them.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A fragment that would be left, surely or by a map that stores beyond it wherever it runs, and is touched by nothing
// but element accesses at the variables of maps, as many in each of its dimensions everywhere, gets an element for each
// of those points, with a warning. A point then finds what the same point wrote: on a GPU, what its thread holds in
// registers. Of what remains, a map that stores to nothing but fragments, and beyond them at its variable, ends where
// they do, with a warning too: no thread holds an element for the other points.
ir::TileProgram grow_fragments(ir::TileProgram program);

}  // namespace tilewright::passes
