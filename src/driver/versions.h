// A program as versions: one that is fast for the calls that most programs get, and others for those of which only some
// of what it assumes holds, or whose tensors begin anywhere.
#pragma once
#include <functional>

#include "ir/program.h"
#include "runtime/executable.h"
#include "runtime/lowered_kernel.h"
#include "tilewright/diagnostic.h"

namespace tilewright {

// The program's workspaces in order, and behind them those that its plans have beside them, whose sizes are known.
std::vector<runtime::KernelWorkspace> workspaces_of(const ir::ThreadProgram& threads);
// Those beyond the program's own.
void add_workspaces(const std::vector<runtime::KernelWorkspace>& all, runtime::LaunchPlan& plan);
// What the thread code asks of a call: addresses of tensors that its accesses can have, workspaces.
void demand_of_calls(const ir::ThreadProgram& threads, runtime::LaunchPlan& plan);

// Takes the lines of plans out, and warns of it. Throws the error if it says anything else than that no plan has them.
void leave_out_plan_lines(ir::TileProgram& program, const CompileError& error);

// `plan` is the canonical program's. `make` compiles the program it is given: the fast one now, another when a call
// needs it, under what holds of that call.
Executable with_fast_version(ir::TileProgram program, runtime::LaunchPlan plan, std::string engine,
                             std::function<runtime::Version(const ir::TileProgram&)> make);

// What `make` makes of the program for calls that the fast version does not take. Lines of plans that only the fast one
// can have are left out, with a warning.
template <class Make>
auto for_other_calls(ir::TileProgram program, const Make& make) {
  try {
    return make(program);
  } catch (const CompileError& error) {
    leave_out_plan_lines(program, error);  // throws if that is not what is wrong
    return make(program);
  }
}

}  // namespace tilewright
