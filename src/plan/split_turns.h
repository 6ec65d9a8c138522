// Launches whose blocks share the turns of a loop of products.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::plan {

// Among how many blocks the turns are shared where nobody says: a launch of products whose tiles leave at least half of
// the multiprocessors idle, of so many turns that handing over is worth it. 1: it stays as it is.
int64_t blocks_to_share(const ir::ProgramTables& program, const ir::Launch& launch, const target::GpuTarget& target);

}  // namespace tilewright::plan
