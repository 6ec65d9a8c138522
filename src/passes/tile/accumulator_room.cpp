#include "passes/tile/accumulator_room.h"

#include "analysis/live_registers.h"
#include "ir/rewrite.h"
#include "target/wgmma.h"

namespace tilewright::passes {

using namespace ir;

std::set<BufferId> accumulators_of(const Launch& launch) {
  std::set<BufferId> accumulators;
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* g = s.as<Gemm>()) accumulators.insert(g->c.buffer);
  });
  return accumulators;
}

int64_t accumulator_registers(const ProgramTables& program, const Launch& launch) {
  return analysis::bits_of_fragments(accumulators_of(launch), program) / 32 / launch.thread_count();
}

int64_t most_registers(const Launch& launch, const target::GpuTarget& target) {
  const int64_t loaders = target.has.tma ? target::kWarpgroupThreads : 0;
  const int64_t each = (target.multiprocessor.registers - SetRegisters::kFewest * loaders) / launch.thread_count();
  return std::min(SetRegisters::kMost, each / SetRegisters::kUnit * SetRegisters::kUnit);
}

}  // namespace tilewright::passes
