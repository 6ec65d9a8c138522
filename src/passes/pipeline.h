// The ordered table of passes, and the one loop that runs it: every pass is verified, timed and shown to an observer.
#pragma once
#include <span>
#include <string_view>

#include "ir/program.h"
#include "support/function_ref.h"
#include "target/cpu.h"

namespace tilewright::passes {

struct Pass {
  const char* name;
  const char* what;
  ir::TileProgram (*run)(ir::TileProgram);
};

// In the order in which they run.
std::span<const Pass> all_passes();
const Pass* find_pass(std::string_view name);

// After each pass: its name, the program it left, the milliseconds it took.
using Observer = function_ref<void(const char* name, const ir::TileProgram& program, double milliseconds)>;

// CompileError of the verifier for the user's mistakes, InternalError that names the pass for ours. At the end: tile
// ops stand under control that their threads agree on, launches that may begin early wait for what they need, and
// nothing is left that would surely be wrong when it runs.
ir::TileProgram run_passes(ir::TileProgram program, std::span<const Pass> passes, Observer observer);

// What the CPU engine does to loops, in order; verified and shown like the passes above.
struct LoopPass {
  const char* name;
  const char* what;
  ir::LoopProgram (*run)(ir::LoopProgram, const target::CpuFeatures&);
};
std::span<const LoopPass> loop_passes();
const LoopPass* find_loop_pass(std::string_view name);
using LoopObserver = function_ref<void(const char* name, const ir::LoopProgram& program)>;
ir::LoopProgram run_loop_passes(ir::LoopProgram program, std::span<const LoopPass> passes,
                                const target::CpuFeatures& features, LoopObserver observer);

}  // namespace tilewright::passes
