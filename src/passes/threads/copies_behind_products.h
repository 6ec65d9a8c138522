// Copies into other slots of a ring that threads begin while their product is at work.
#pragma once
#include "passes/threads/placement.h"

namespace tilewright::passes {

// In a turn that first issues copies by cp.async and then multiplies, the product comes first, and is waited for behind
// them: what threads compute of addresses takes no time of its own then. That is where wgmma does the product, the
// copies write to no slot that it reads, and nothing that it passes has to do with its registers. Statements keep their
// numbers.
ir::Body copies_behind_products(const ir::TileProgram& program, const ir::Launch& launch, const Placement& placement);

}  // namespace tilewright::passes
