// Launches one after the other, the warps of a block in turns.
#include "simulator/simulator.h"

#include <algorithm>
#include <random>

#include "interpreter/clusters.h"
#include "interpreter/scheduler.h"
#include "ir/rewrite.h"
#include "simulator/warp.h"
#include "support/diagnostic.h"

namespace tilewright::simulator {

namespace {

using interpreter::Clusters;
using interpreter::Grid;
using interpreter::LaunchCode;
using interpreter::ProgramCode;
using interpreter::Strand;

std::array<int64_t, 3> block_index(const LaunchCode& code, int64_t linear) {
  return {linear % code.grid[0], linear / code.grid[0] % code.grid[1], linear / code.grid[0] / code.grid[1]};
}

// Whether a warp may have to wait for another one.
bool may_block(const ir::Launch& launch) {
  bool found = false;
  ir::walk(launch.body, [&](const ir::Stmt& s) {
    const auto* vote = s.as<ir::Vote>();
    const auto* sync = s.as<ir::Sync>();
    const auto* drain = s.as<ir::Drain>();
    found = found || s.as<ir::While>() || s.as<ir::Wait>() || s.as<ir::SetRegisters>() ||
            (drain && drain->queue == ir::Queue::Wgmma) || (vote && vote->kind >= ir::VoteKind::BlockAny) ||
            (sync && sync->scope != ir::SyncScope::Warp && sync->scope != ir::SyncScope::Launches);
  });
  return found;
}

struct BlockWithWarps {
  BlockWithWarps(Device& device, Grid& grid, SimulatedCluster& cluster) : block(device, grid, cluster) {
    const int64_t threads = grid.code.thread_count;
    for (int64_t first = 0; first < threads; first += kWarpThreads) {
      warps.push_back(std::make_unique<Warp>(block, first, std::min(kWarpThreads, threads - first)));
      order.push_back(warps.back().get());
    }
  }
  void reset(int64_t number, std::minstd_rand& random) {
    block.reset(static_cast<uint32_t>(number), block_index(block.device.code, number));
    std::shuffle(order.begin(), order.end(), random);
  }
  SimulatedBlock block;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<Strand*> order;
};

int64_t warps_of(const LaunchCode& code) { return (code.thread_count + kWarpThreads - 1) / kWarpThreads; }

void run_blocks(const ProgramCode& program, Device& device, int64_t blocks, std::minstd_rand& random) {
  const Clusters clusters(device.code);
  interpreter::LoneScheduler lone;
  interpreter::TurnScheduler turns;
  const int64_t warps = warps_of(device.code) * clusters.size();
  const bool in_turns = warps > 1 && may_block(*device.code.launch);
  Grid grid{program,
            device.code,
            in_turns ? static_cast<interpreter::Scheduler*>(&turns) : &lone,
            {},
            in_turns ? static_cast<int>(warps) : 1};
  SimulatedCluster cluster(device, clusters.size());
  std::vector<std::unique_ptr<BlockWithWarps>> list;
  for (int64_t r = 0; r < clusters.size(); ++r) list.push_back(std::make_unique<BlockWithWarps>(device, grid, cluster));
  device.blocks = cluster.blocks;
  for (int64_t c = 0; c < blocks / clusters.size(); ++c) {
    std::vector<Strand*> order;
    for (int64_t r = 0; r < clusters.size(); ++r) {
      BlockWithWarps& b = *list[static_cast<size_t>(r)];
      b.reset(clusters.block(c, r), random);
      order.insert(order.end(), b.order.begin(), b.order.end());
    }
    if (clusters.size() > 1) std::shuffle(order.begin(), order.end(), random);
    if (in_turns)
      turns.run(order);
    else
      for (Strand* warp : order) warp->run();
    for (SimulatedBlock* b : cluster.blocks) b->check_completed();
  }
}

// Blocks that wait for each other run at the same time.
void run_cooperative(const ProgramCode& program, Device& device, int64_t blocks, std::minstd_rand& random) {
  interpreter::TurnScheduler turns;
  Grid grid{program, device.code, &turns, {}, static_cast<int>(blocks * warps_of(device.code))};
  std::deque<SimulatedCluster> clusters;
  std::vector<std::unique_ptr<BlockWithWarps>> list;
  std::vector<Strand*> order;
  for (int64_t b = 0; b < blocks; ++b) {
    list.push_back(std::make_unique<BlockWithWarps>(device, grid, clusters.emplace_back(device, 1)));
    list.back()->reset(b, random);
    device.blocks.push_back(&list.back()->block);
    order.insert(order.end(), list.back()->order.begin(), list.back()->order.end());
  }
  std::shuffle(order.begin(), order.end(), random);
  turns.run(order);
  for (SimulatedBlock* b : device.blocks) b->check_completed();
}

// mbarriers have bytes of their own, whole words of 8.
void check_barrier_places(const ir::ThreadProgram& program, const LaunchCode& code) {
  constexpr int64_t kBytes = 8;
  for (const uint32_t id : code.on_chip) {
    const interpreter::BufferCode& b = code.buffers[id];
    const int64_t first = b.source->place, end = first + b.elements * kBytes;
    if (b.space != ir::Space::Barrier || first < 0) continue;
    if (first % kBytes != 0)
      fail(Code::MisalignedAccess, program.location(b.source->location),
           fmt::format("the mbarriers '{}' lie at byte {} of shared memory, no multiple of {}", b.source->name, first,
                       kBytes));
    for (const uint32_t other : code.on_chip) {
      const interpreter::BufferCode& o = code.buffers[other];
      const int64_t begin = o.source->place;
      const int64_t last = begin + (o.space == ir::Space::Barrier ? o.elements * kBytes : bytes_of(o.type, o.elements));
      if (other != id && begin >= 0 && begin < end && first < last)
        fail(Code::PhaseMisuse, program.location(b.source->location),
             fmt::format("the mbarriers '{}' share bytes of shared memory with '{}'", b.source->name, o.source->name));
    }
  }
}

void check_clusters(const ir::ThreadProgram& program, const LaunchCode& code) {
  const Clusters clusters(code);
  if (!clusters.fits())
    fail(Code::SimulatorRefuses, program.location(code.launch->location),
         fmt::format("a grid of {} blocks in clusters of {}", fmt::join(code.grid, " x "),
                     fmt::join(code.launch->cluster, " x ")),
         "a grid consists of whole clusters");
  if (clusters.size() > 1 && code.grid_sync)
    fail(Code::SimulatorRefuses, program.location(code.launch->location),
         "the simulator has no barrier of the grid for blocks in clusters");
}

int64_t shared_bytes(const ir::ThreadProgram& program, const LaunchCode& code, const SimulateOptions& options) {
  int64_t bytes = 0;
  for (const uint32_t id : code.on_chip) {
    const interpreter::BufferCode& b = code.buffers[id];
    if (b.space != ir::Space::Shared || b.source->place < 0) continue;
    if (const MemoryLayout* layout = b.memory(); layout && b.source->place % layout->alignment() != 0)
      fail(Code::MisalignedAccess, program.location(b.source->location),
           fmt::format("'{}' lies at byte {} of shared memory; its layout wants a multiple of {}", b.source->name,
                       b.source->place, layout->alignment()));
    const int64_t end = b.source->place + bytes_of(b.type, b.elements);
    bytes = std::max(bytes, end);
    if (end > options.target.shared_bytes)
      fail(Code::SharedMemoryExceeded, program.location(b.source->location),
           fmt::format("'{}' ends at byte {} of the shared memory of a block, which has {}", b.source->name, end,
                       options.target.shared_bytes));
  }
  return bytes;
}

}  // namespace

std::vector<LaunchReport> simulate(const ir::ThreadProgram& program, const interpreter::Binding& binding,
                                   const SimulateOptions& options) {
  const ProgramCode bound = interpreter::bind(program, binding);
  std::minstd_rand random(static_cast<uint32_t>(options.seed * 2 + 1));
  std::vector<LaunchReport> reports;
  for (const ir::Launch& launch : program.launches) {
    const std::unique_ptr<LaunchCode> code = interpreter::prepare_threads(bound, launch);
    LaunchReport report;
    report.name = launch.name, report.threads = code->thread_count;
    report.blocks = std::max<int64_t>(code->grid[0] * code->grid[1] * code->grid[2], 0);
    report.shared_bytes = shared_bytes(program, *code, options);
    check_barrier_places(program, *code);
    check_clusters(program, *code);
    Device device(*code, program, options);
    if (options.timeline) options.timeline->launches.push_back({launch.name, report.threads, {}});
    if (report.blocks > 0 && (code->grid_sync || (code->together && !code->in_clusters)))
      run_cooperative(bound, device, report.blocks, random);
    else if (report.blocks > 0)
      run_blocks(bound, device, report.blocks, random);
    report.lines = device.lines();
    for (const LineTraffic& line : report.lines) report.total += line.traffic;
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace tilewright::simulator
