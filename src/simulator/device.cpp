#include "simulator/device.h"

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
  for (auto& [root, shadow] : global_) shadow = Shadow(shadow.cell_bits());
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

SimulatedBlock::SimulatedBlock(Device& owner, interpreter::Grid& grid)
    : device(owner),
      memory(grid),
      clocks(owner.code.thread_count, owner.eras),
      shared(owner.shared_cell_bits()),
      barriers(owner.code.thread_count),
      queues(owner.code.thread_count) {}

void SimulatedBlock::reset(uint32_t number_in_grid, std::array<int64_t, 3> index) {
  number = number_in_grid;
  memory.reset(index);
  clocks.new_era();
  barriers.reset();
  for (const CellRange& range : queues.reset())
    for (uint64_t c = range.first; c <= range.last; ++c) shared.cell(c).writer.pending = false;
}

}  // namespace tilewright::simulator
