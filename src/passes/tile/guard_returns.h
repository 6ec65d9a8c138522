// Blocks that return early, as conditions around what the others do.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// `if none { return }` in front of the rest of a launch that multiplies becomes `if not none { the rest }`, where all
// threads of the block agree on it: what plans roles and rings then sees a condition and no end. On canonical tile
// programs; leaves them so.
ir::TileProgram guard_returns(ir::TileProgram program);

}  // namespace tilewright::passes
