#include "driver/versions.h"

#include "ir/operators.h"
#include "passes/assume_fast_calls.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright {

std::vector<runtime::KernelWorkspace> workspaces_of(const ir::ThreadProgram& threads) {
  std::vector<runtime::KernelWorkspace> out;
  for (const ir::Buffer& b : threads.buffers) {
    if (!b.workspace || b.is_view()) continue;
    int64_t bits = b.type.storage_bits();
    for (const ir::Expr& e : b.shape) bits *= ir::constant_int(e).value_or(0);
    out.push_back({bits / 8, b.zeroed});
  }
  return out;
}

void add_workspaces(const std::vector<runtime::KernelWorkspace>& all, runtime::LaunchPlan& plan) {
  for (size_t i = plan.workspaces.size(); i < all.size(); ++i)
    plan.workspaces.push_back({"workspace of a plan", u8, runtime::constant(all[i].bytes), all[i].zeroed});
}

void demand_of_calls(const ir::ThreadProgram& threads, runtime::LaunchPlan& plan) {
  for (size_t i = 0; i < plan.parameters.size(); ++i)
    if (threads.params[i].is_tensor())
      plan.parameters[i].alignment = static_cast<int>(threads.buffer(threads.params[i].buffer).alignment);
  add_workspaces(workspaces_of(threads), plan);
}

void leave_out_plan_lines(ir::TileProgram& program, const CompileError& error) {
  if (error.diagnostic().code != static_cast<uint16_t>(Code::GpuPlan)) throw error;
  Diagnostic said = error.diagnostic();
  said.severity = Diagnostic::Severity::Warning;
  said.message += "; calls that need another version than the fast one run without the lines of the plan";
  said.help = "they are calls with rows that are no whole pieces of 16 bytes, or tensors that begin elsewhere";
  warn(std::move(said));
  for (ir::Launch& launch : program.launches) launch.plan.clear();
}

Executable with_fast_version(ir::TileProgram program, runtime::LaunchPlan plan, std::string engine,
                             std::function<runtime::Version(const ir::TileProgram&)> make) {
  const ir::TileProgram fast = passes::assume_fast_calls(program);
  runtime::Version first = make(fast);
  check_internal(
      fast.assumptions.size() - program.assumptions.size() == first.plan.assumes.size() - plan.assumes.size(),
      "{}: assumptions that no call is asked for", program.name);
  auto general = [program = std::move(program), make = std::move(make)](const runtime::CallFacts& call) {
    if (!call.aligned) return for_other_calls(passes::assume_no_alignment(program), make);
    return for_other_calls(
        passes::assume_what_holds(program, [&](const ir::Assumption&, size_t i) { return bool{call.holds[i]}; }), make);
  };
  return runtime::make_executable(std::move(plan), std::move(first), std::move(general), std::move(engine));
}

}  // namespace tilewright
