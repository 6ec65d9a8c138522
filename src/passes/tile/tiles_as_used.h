// Shared tiles that programs declare otherwise than they use them.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A shared tile that is used through one view of all of it is that view. An operand of products of which all accesses
// lie in a box that begins at 0 is that box: padding that keeps rows apart in banks is the layout's to choose. TMA,
// cp.async and matrix instructions then find whole tiles.
ir::TileProgram tiles_as_used(ir::TileProgram program);

}  // namespace tilewright::passes
