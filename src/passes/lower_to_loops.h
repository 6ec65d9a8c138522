// The CPU's road from tiles to loops: every launch becomes a loop over blocks, every tile op loops over elements, and
// the code of a block's threads loops over the threads.
//
// Needs: a canonical TileProgram (passes/canonicalize.h) that verifies.
// Leaves: a LoopProgram whose launches have one statement, a For of kind Grid over the linear block index; the launch's
//   block variables are bound inside. In it
//   - every access is in bounds and unguarded, indices are int64 and do not wrap;
//   - Shared buffers are memory of the core that runs the block, Fragment buffers scalars of the block, Local buffers
//     belong to the innermost body that holds all their uses;
//   - an Atomic must be atomic if its buffer is global, as must be a store of less than a byte there;
//   - a For of kind Vectorized has independent iterations;
//   - Print and Assert carry the coordinates of their block and thread.
// Fails: CompileError with codes CpuRole to CpuCluster for what this engine does not run.
#pragma once
#include "ir/program.h"
#include "target/cpu.h"

namespace tilewright::passes {

ir::LoopProgram lower_to_loops(const ir::TileProgram& program, const target::CpuTarget& target);

}  // namespace tilewright::passes
