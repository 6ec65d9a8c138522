// Blocks that take one tile after the other, whose threads bring the next one while they compute this.
#pragma once
#include "plan/hints.h"
#include "target/gpu.h"

namespace tilewright::plan {

// A plan without roles for a launch without products, of which a multiprocessor holds one block at a time: nothing else
// is there to use the memory while it computes. Its rings are the tiles that a block brings from global memory once, at
// the top of its body. Taken where hints ask for it, and for tiles of 64 KB and more whose elements go through
// functions such as exp. None: `why` says why hints do not get it.
std::optional<Plan> tiles_ahead(const ir::ProgramTables& program, const ir::Launch& launch,
                                const target::GpuTarget& target, const Hints& hints, std::string& why);

}  // namespace tilewright::plan
