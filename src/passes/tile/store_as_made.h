// Elements of fragments that leave for memory, stored by the map that makes them.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A map that makes a fragment of fragments, and the map behind it that stores the same elements to global memory, are
// one map where nothing else wants them: stores begin with the first elements, while the others are computed, not
// behind the last. What the first reads of memory would wait behind those stores: such maps stay two; so do results of
// products, which have ways of their own. Needs tile programs behind copies_to_maps; leaves them so.
ir::TileProgram store_as_made(ir::TileProgram program);

}  // namespace tilewright::passes
