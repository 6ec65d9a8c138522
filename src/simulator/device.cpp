#include "simulator/device.h"

#include "ir/effects.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "support/diagnostic.h"

namespace tilewright::simulator {

using interpreter::BufferCode;
using interpreter::Step;

Device::Device(const interpreter::LaunchCode& launch, const ir::ProgramTables& tables, const SimulateOptions& chosen)
    : code(launch), program(tables), options(chosen) {
  for (const BufferCode& b : code.buffers) {
    const int bits = std::max(b.type.storage_bits(), 1);
    if (b.space == ir::Space::Shared) shared_cell_bits_ = std::min(shared_cell_bits_, bits);
    if (b.space != ir::Space::Global) continue;
    auto [at, fresh] = global_.try_emplace(b.root, bits);
    if (!fresh && bits < at->second.cell_bits()) at->second = Shadow(bits);
  }
  survey();
}

void Device::survey() {
  ir::walk(code.launch->body, [&](const ir::Stmt& stmt) {
    for (const ir::Effect& e : ir::effects_of(stmt).list)
      if (e.region.valid() && e.access != ir::Access::Read) written_.insert(program.root(e.region.buffer).index);
    const auto* wgmma = stmt.as<ir::Wgmma>();
    if (!wgmma) return;
    for (const ir::Region* r : {&wgmma->a, &wgmma->c})
      if (const ir::BufferId root = program.root(r->buffer); program.buffer(root).space == ir::Space::Local)
        wgmma_registers_.insert(root.index);
  });
}

uint16_t Device::site(const Step& step) {
  auto [at, fresh] = numbers_.try_emplace(&step, static_cast<uint16_t>(sites_.size()));
  if (fresh) {
    check_internal(sites_.size() < UINT16_MAX, "more statements than the simulator can number");
    sites_.push_back(&step), traffic_.emplace_back();
  }
  return at->second;
}

void Device::meet_all() {
  for (auto& [root, shadow] : global_) shadow.forget_done();
  for (SimulatedBlock* b : blocks) b->clocks.new_era();
}

std::vector<LineTraffic> Device::lines() const {
  std::map<std::tuple<std::string, int>, LineTraffic> by_line;
  for (size_t i = 0; i < sites_.size(); ++i) {
    SourceLocation at = location(static_cast<uint16_t>(i));
    at.column = 0;
    LineTraffic& line = by_line[{at.file, at.line}];
    line.location = at, line.traffic += traffic_[i];
  }
  std::vector<LineTraffic> out;
  for (auto& [key, line] : by_line) out.push_back(std::move(line));
  return out;
}

namespace {

int64_t warps_of(const interpreter::LaunchCode& code) { return (code.thread_count + kWarpThreads - 1) / kWarpThreads; }

// The mbarriers, then the warps, for what wgmma does.
int64_t agents_of(const interpreter::LaunchCode& code) {
  return static_cast<int64_t>(Mbarriers(code).count()) + warps_of(code);
}

}  // namespace

SimulatedCluster::SimulatedCluster(Device& device, int64_t count)
    : clocks(device.code.thread_count, agents_of(device.code), device.eras, count) {}

SimulatedBlock::SimulatedBlock(Device& owner, interpreter::Grid& grid, SimulatedCluster& all)
    : device(owner),
      cluster(all),
      rank(static_cast<int64_t>(all.blocks.size())),
      memory(grid),
      clocks(all.clocks.of_block(rank)),
      shared(owner.shared_cell_bits()),
      barriers(owner.code.thread_count),
      queues(owner.code.thread_count),
      mbarriers(owner.code),
      async(memory.bytes()),
      warpgroups(static_cast<size_t>((owner.code.thread_count + kWarpgroupThreads - 1) / kWarpgroupThreads)) {
  all.blocks.push_back(this);
  all.memories.blocks.push_back(&memory), memory.cluster = &all.memories;
  all.warps += warps_of(owner.code);
}

void SimulatedBlock::reset(uint32_t number_in_grid, std::array<int64_t, 3> index) {
  number = number_in_grid, units = {}, cluster.clock = {};
  memory.reset(index);
  shared.forget_told();
  clocks.new_block();
  barriers.reset();
  mbarriers.reset(clocks);
  async.reset();
  for (Warpgroup& w : warpgroups) w = {};
  free_registers = 0;
  visits_.clear();
  for (const CellRange& range : queues.reset())
    for (uint64_t c = range.first; c <= range.last; ++c) shared.cell(c).writer.pending = false;
}

void SimulatedBlock::check_completed() {
  for (const Mbarrier& b : mbarriers.all()) {
    Clock known = 0;
    for (int64_t t = 0; t < device.code.thread_count && known < b.delivered; ++t)
      known = std::max(known, clocks.known(t, b.agent));
    if (known < b.delivered)
      fail(Code::NeverCompleted, device.program.location(b.initialized->node().location),
           fmt::format("block {} ends while a copy to shared memory may be under way: nobody waits for phase {} of one "
                       "of these mbarriers",
                       number, b.delivered - 1),
           "wait for every phase that announces bytes");
  }
  check_visits();
}

// Its shared memory is gone when its last thread is.
void SimulatedBlock::check_visits() {
  for (const auto& [thread, at] : visits_) {
    bool known = false;
    for (int64_t t = 0; t < device.code.thread_count && !known; ++t)
      known = clocks.knows(clocks.witness(t), Deed{thread, at});
    if (!known)
      fail(Code::NeverCompleted, device.program.location(device.code.launch->location),
           fmt::format(
               "block {} may end before another block of its cluster reaches its shared memory for the last time",
               number),
           "let the blocks of the cluster meet before they end: sync cluster");
  }
}

}  // namespace tilewright::simulator
