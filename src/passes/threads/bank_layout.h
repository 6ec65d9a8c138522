// Shared buffers that only elementwise code touches, laid out so that the lanes of a warp meet in few banks.
#pragma once
#include "ir/program.h"
#include "passes/threads/placement.h"

namespace tilewright::passes {

// Swizzles what the Maps of a launch read or write across its rows. Chunks of 16 bytes stay whole. After
// lay_out_shared, whose layouts stand; before the lowering. `tight`: none takes more than its elements do.
void spread_over_banks(ir::ThreadProgram& program, const ir::Launch& launch, const Placement& placement, bool tight);

}  // namespace tilewright::passes
