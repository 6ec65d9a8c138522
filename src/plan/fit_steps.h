// Other steps of a loop of products than the program's, so that a step brings what TMA and the matrix unit like best.
#pragma once
#include "plan/hints.h"
#include "target/gpu.h"

namespace tilewright::plan {

// Where a pipelined loop multiplies what it brings and nothing else, a step is 128 bytes of a row of the operands: a
// line of the L2 cache, the width of a swizzle, and enough products for a wait. Shorter ones are taken several at a
// time; of longer ones that leave no room for a ring, half. Sums keep their order. Nothing: the steps are right, or
// their number does not divide and what lies behind the last is not known to be zero.
Fit fit_steps(const ir::ProgramTables& program, const ir::Launch& launch, const target::GpuTarget& target,
              const Hints& hints);

}  // namespace tilewright::plan
