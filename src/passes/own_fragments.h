// Fragments that hold what each thread has for itself.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A fragment is one tile of all threads. One that thread code alone stores and loads, at the same element in all
// threads, where all of those come by that load it, and of which some store has a value of each thread's own, would be
// a race; it is a thread's own memory instead, as TileLang has it, in which each thread finds what it stored. Where all
// stores have one value for all threads a fragment stays what it is. Needs roles; leaves them so.
void give_threads_own_fragments(ir::TileProgram& program, ir::Launch& launch);

}  // namespace tilewright::passes
