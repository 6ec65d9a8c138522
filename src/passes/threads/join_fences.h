// Fewer fences for asynchronous copies: one serves the warps' arrivals before it, too.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A fence before arrivals of warps waits for all that a warp has on its way to memory. Where another one follows, and
// nothing in between waits for anybody or reads memory, the arrivals go behind that one and the first is left out: whom
// they tell hears a few instructions later. Needs fences (place_sync).
ir::Body join_fences(const ir::ProgramTables& program, const ir::Body& body);

}  // namespace tilewright::passes
