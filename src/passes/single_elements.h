// Tiles without dimensions: one element.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Each gets a dimension of one element, so that those who lay tiles out, deal them to threads and walk over them find
// one. Variables and tensors stay as they are.
ir::TileProgram give_single_elements_a_dimension(ir::TileProgram program);

}  // namespace tilewright::passes
