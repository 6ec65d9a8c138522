// Products that add to part of a fragment.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A product that adds to a box of a fragment adds to a fragment of its own, which matrix instructions want whole: what
// the box holds comes before the loop of such products and goes back behind it; where boxes of the loop meet, or it
// does something else with the fragment, around each product. Needs canonical tile programs; leaves them so.
ir::TileProgram box_accumulators(ir::TileProgram program);

}  // namespace tilewright::passes
