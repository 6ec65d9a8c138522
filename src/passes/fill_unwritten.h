// Tiles that nothing writes, of programs for a language in which reading them is no mistake.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Under the option zero_unwritten: a tile of shared memory, a fragment or a thread's own that is read, and that no
// statement of its launch writes, is filled with zeros where the launch begins, and a warning says so
// (ReadBeforeWrite). Reducers and pointers stay as they are. What is written later than it is read stays a mistake
// (analysis/first_reads.h), and under the option strict all of it does.
ir::TileProgram fill_unwritten(ir::TileProgram program);

}  // namespace tilewright::passes
