// What a thread's own variables hold, and how often pipelines run, as names.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A thread's own variable is read by the name of what was stored last, where that is known: behind the store, behind a
// short loop of a known number of turns that only computes, behind a condition that only chooses. What says how often a
// pipeline runs is read before it. Whoever runs ahead knows names, and no variables. Stores that nobody reads any more
// go. Needs canonical tile programs; leaves them so.
ir::TileProgram name_locals(ir::TileProgram program);

}  // namespace tilewright::passes
