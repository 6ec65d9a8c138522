// Tiles shrink to what one iteration of a loop needs of them.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// If all uses of a tile stand in one loop, every index of one of its dimensions is the loop's variable, and no
// iteration reads there what it did not write, the dimension becomes 1; of a product's tile that goes by panels, the
// panels become one. A tile of one element becomes a scalar. An element that is stored last, and only its own iteration
// reads, becomes a name.
ir::Body contract_tiles(const ir::Body& block, ir::LoopProgram& program, int32_t launch);

}  // namespace tilewright::passes
