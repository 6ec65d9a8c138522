// A program as versions: one that is fast for the calls that most programs get, and the program itself for the others.
#pragma once
#include "ir/program.h"
#include "runtime/executable.h"

namespace tilewright {

// What accesses of the thread code ask of the addresses of tensors.
void demand_alignments(const ir::ThreadProgram& threads, runtime::LaunchPlan& plan);

// `plan` is the canonical program's. `make` compiles the program it is given: the fast one now, the other when a call
// needs it.
Executable with_fast_version(ir::TileProgram program, runtime::LaunchPlan plan, std::string engine,
                             std::function<runtime::Version(const ir::TileProgram&)> make);

}  // namespace tilewright
