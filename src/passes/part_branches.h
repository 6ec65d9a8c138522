// Branches that threads of a warp take differently, in which they share memory: what one of them writes, another reads
// or writes behind it. Such a branch becomes branches on the same condition, one after the other, and its loops of
// which all threads know the turns come around them: the threads meet between the branches, as they do between
// statements that all of them come to.
//
// Needs: statements with numbers; roles that canonicalize() has found. Leaves alone branches on whole warps, which have
// barriers of their own, what jumps out of a branch, and what speaks of barriers of more than a warp itself.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

void part_branches(ir::TileProgram& program, ir::Launch& launch);

}  // namespace tilewright::passes
