// The CUDA engine behind an Executable: thread code, CUDA text, the device compiler or the cache.
#pragma once
#include "codegen/cuda.h"
#include "driver/dump.h"
#include "passes/lower_to_threads.h"

namespace tilewright {

// The thread code of a canonical program, verified. CompileError for what the engine refuses.
passes::ThreadLowering lower_cuda(const ir::TileProgram& program, const target::GpuTarget& target);
// The text alone.
codegen::CudaSource write_cuda(const ir::TileProgram& program, const target::GpuTarget& target, Dump& dump);

}  // namespace tilewright
