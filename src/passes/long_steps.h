// Loops of products take several of their steps at once, for processors.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A step's sums go from memory to registers and back, whatever its length: neighbouring steps of a loop of the launch's
// body that multiplies what it brings, and nothing else, are one, until a row of an operand has half a KiB; what is
// left of them follows in a loop of its own. Needs canonical tile programs; leaves them so.
ir::TileProgram long_steps(ir::TileProgram program);

}  // namespace tilewright::passes
