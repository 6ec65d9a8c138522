#include "plan/residency.h"

#include <algorithm>
#include <map>

#include "analysis/live_registers.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/rewrite.h"

namespace tilewright::plan {

using namespace ir;

namespace {

constexpr int64_t kOwnRegisters = 32;  // of a thread, beside those of tiles (assumed)

// Of tiles that pipelined loops bring.
std::map<BufferId, int64_t> stages_of_tiles(const ProgramTables& p, const Launch& launch) {
  std::map<BufferId, int64_t> out;
  walk(launch.body, [&](const Stmt& s) {
    const auto* loop = s.as<For>();
    if (!loop || loop->kind != LoopKind::Pipelined) return;
    walk(loop->body, [&](const Stmt& inner) {
      const auto* copy = inner.as<Copy>();
      if (copy && p.buffer(p.root(copy->from.buffer)).space == Space::Global)
        out[p.root(copy->to.buffer)] = std::max<int64_t>(loop->stages, 1);
    });
  });
  return out;
}

}  // namespace

int64_t blocks_beside(const ProgramTables& p, const Launch& launch, const target::GpuTarget& target) {
  const target::Multiprocessor& m = target.multiprocessor;
  const int64_t threads = launch.thread_count();
  int64_t bytes = 0;
  const std::map<BufferId, int64_t> stages = stages_of_tiles(p, launch);
  const std::set<BufferId> used = used_roots(launch.body, p);
  for (BufferId id : used)
    if (const auto staged = stages.find(id); p.buffer(id).space == Space::Shared)
      bytes += bytes_on_chip(p.buffer(id)) * (staged == stages.end() ? 1 : staged->second);
  const int64_t registers = analysis::bits_of_fragments(used, p) / 32 + kOwnRegisters * threads;
  int64_t blocks = std::clamp<int64_t>(m.registers / registers, 1, std::max<int64_t>(m.threads / threads, 1));
  while (blocks > 1 && bytes > target.shared_bytes_of_blocks(blocks)) --blocks;
  return blocks;
}

}  // namespace tilewright::plan
