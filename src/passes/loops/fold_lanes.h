// The tree that joins the lanes of a reduction is one statement: host compilers take the last levels of its loops apart
// into single elements.
//
// Needs: a LoopProgram.
// Leaves: the same results. Loops that follow one another, `for lane < half: lanes[lane] = value of lanes[lane] and
//   lanes[lane + half]` for half = n, n / 2, .. 1, are a Fold if the first fills the least vector, the value has only
//   what vectors have operators for, and nothing but the first lane is read afterwards.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

ir::LoopProgram fold_lanes(ir::LoopProgram program);

}  // namespace tilewright::passes
