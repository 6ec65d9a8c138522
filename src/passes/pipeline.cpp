#include "passes/pipeline.h"

#include <chrono>

#include "analysis/collectives.h"
#include "ir/verify.h"
#include "passes/canonicalize.h"

namespace tilewright::passes {
namespace {

constexpr Pass kPasses[] = {
    {"canonicalize", "one spelling: fma, roles, merged maps, no constant conditions", canonicalize},
};

}  // namespace

std::span<const Pass> all_passes() { return kPasses; }

const Pass* find_pass(std::string_view name) {
  for (const Pass& p : kPasses)
    if (p.name == name) return &p;
  return nullptr;
}

ir::TileProgram run_passes(ir::TileProgram program, std::span<const Pass> passes, Observer observer) {
  ir::check_valid(program);
  for (const Pass& pass : passes) {
    const auto start = std::chrono::steady_clock::now();
    program = pass.run(std::move(program));
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    ir::check_valid(program, pass.name);
    observer(pass.name, program, took.count());
  }
  ir::throw_findings(analysis::check_collectives(program), nullptr);
  return program;
}

}  // namespace tilewright::passes
