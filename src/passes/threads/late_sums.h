// Sums and maxima, say, over the columns of a tile that a loop only gathers: each lane keeps its own part of the
// result, and the lanes meet once, behind the loop, instead of in every turn (the row sums of an online softmax).
#pragma once
#include "passes/threads/placement.h"

namespace tilewright::passes {

// The body with a FinalizeReducer where a result is read first; these, and what flows into them, are `partial` in the
// placement from then on. Statements keep their nodes but for those around others.
ir::Body late_sums(const ir::TileProgram& program, const ir::Launch& launch, Placement& placement);

}  // namespace tilewright::passes
