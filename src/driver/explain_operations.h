// What each tile operation became on a GPU, and what it might have become.
#pragma once
#include "driver/explain.h"
#include "passes/lower_to_threads.h"
#include "target/gpu.h"

namespace tilewright {

// The instruction that a gemm takes, how many warps do it, and where `a` is.
std::string instruction_text(const ir::Gemm& gemm, const passes::GemmChoice& choice);

// `tiles`: canonical, of which `launch.operations` speak; `lowering`: what the engine made of it.
void add_operation_facts(const ir::TileProgram& tiles, const passes::ThreadLowering& lowering, size_t number,
                         const target::GpuTarget& target, LaunchFacts& launch);

}  // namespace tilewright
