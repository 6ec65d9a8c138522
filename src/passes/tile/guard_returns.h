// Blocks that return early, or leave nothing, as conditions around what the others do.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// `if none { return }` in front of the rest of a launch that multiplies becomes `if not none { the rest }`, where all
// threads of the block agree on it: what plans roles and rings then sees a condition and no end. On canonical tile
// programs; leaves them so.
ir::TileProgram guard_returns(ir::TileProgram program);

// Where all that a launch leaves is left by maps under `point < rows`, and the block knows the number before it
// multiplies, what follows stands under `0 < rows`: a tile beyond the rows of its group, in programs that give every
// group whole tiles, is not computed. On canonical tile programs; leaves them so.
ir::TileProgram skip_empty_tiles(ir::TileProgram program);

}  // namespace tilewright::passes
