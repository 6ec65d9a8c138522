// Maps over part of a fragment, of which not every thread holds some, made maps over all of it: its elements stay in
// the registers of the threads that have them.
#pragma once
#include <limits>

#include "passes/threads/placement.h"

namespace tilewright::passes {

// Numbers and places the launch, and widens its maps where more fragments stay in registers for it, but for maps that
// store to buffers from number `buffers` on. Returns the placement of what it leaves. Copy and Fill must have become
// Maps (elementwise.h).
Placement widen_maps(ir::TileProgram& program, size_t launch, const target::GpuTarget& target,
                     size_t buffers = std::numeric_limits<size_t>::max());

}  // namespace tilewright::passes
