// The code of one thread of a launch.
#pragma once
#include "passes/named_barriers.h"
#include "passes/threads/placement.h"

namespace tilewright::passes {

// The launch of `tiles` as what each of its threads does, every access of global memory proven or guarded; new buffers
// and variables go to `out`, whose shared buffers have their layouts (lay_out_shared). Fragments that are no registers
// are still fragments. Needs barriers (place_sync). Fails: more roles than there are hardware barriers.
ir::Launch lower_launch(const ir::TileProgram& tiles, const ir::Launch& launch, const Placement& placement,
                        const NamedBarriers& barriers, ir::ThreadProgram& out);

}  // namespace tilewright::passes
