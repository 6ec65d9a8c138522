// Loops whose turns are rows of fragments.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A serial loop around nothing but a map, each turn of which touches rows of its own of all that is written, becomes a
// map with one more dimension, where a fragment is accessed by the loop's variable: in a loop its register would be
// known only at run time. Needs tile programs; leaves them so.
void merge_turns(ir::Launch& launch, const ir::ProgramTables& program);

}  // namespace tilewright::passes
