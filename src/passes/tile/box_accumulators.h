// Products that add to part of a fragment.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A product that adds to a box of a fragment adds to a fragment of its own, which matrix instructions want whole: what
// the box holds comes before the loop of such products, or before one that stands alone, and goes back behind it. Where
// boxes of the fragment meet, or the loop does something else with it, they stay. Needs canonical tile programs; leaves
// them so.
ir::TileProgram box_accumulators(ir::TileProgram program);

}  // namespace tilewright::passes
