// What the blocks of a running launch share: the shadows of global memory, and what is counted.
#pragma once
#include <deque>
#include <map>
#include <set>
#include <unordered_map>

#include "interpreter/strand.h"
#include "simulator/async_shadow.h"
#include "simulator/barriers.h"
#include "simulator/mbarriers.h"
#include "simulator/queues.h"
#include "simulator/shadow.h"
#include "simulator/simulator.h"
#include "simulator/warpgroup.h"

namespace tilewright::simulator {

struct SimulatedBlock;

class Device {
 public:
  Device(const interpreter::LaunchCode& code, const ir::ProgramTables& program, const SimulateOptions& options);

  // The number of a statement.
  uint16_t site(const interpreter::Step& step);
  SourceLocation location(uint16_t site) const { return program.location(sites_[site]->node().location); }
  Traffic& traffic(uint16_t site) { return traffic_[site]; }
  uint32_t next_instruction() { return ++instructions_; }
  Shadow& global(uint32_t root) { return global_.at(root); }
  int shared_cell_bits() const { return shared_cell_bits_; }
  // Whether this launch writes the global buffer: else nothing can race with a read of it.
  bool writes(uint32_t root) const { return written_.contains(root); }
  // The local buffers that wgmma uses.
  const std::set<uint32_t>& wgmma_registers() const { return wgmma_registers_; }
  // All blocks have met: what was done is known to everybody.
  void meet_all();

  std::vector<LineTraffic> lines() const;

  const interpreter::LaunchCode& code;
  const ir::ProgramTables& program;
  const SimulateOptions& options;
  uint32_t eras = 0;
  std::vector<SimulatedBlock*> blocks;  // that run now
  MeetingClock clock;                   // of the barrier of the grid

 private:
  void survey();

  std::map<uint32_t, Shadow> global_;  // by root buffer
  std::set<uint32_t> written_, wgmma_registers_;
  int shared_cell_bits_ = 64;
  uint32_t instructions_ = 0;
  std::vector<const interpreter::Step*> sites_;
  std::unordered_map<const interpreter::Step*, uint16_t> numbers_;
  std::deque<Traffic> traffic_;
};

// Blocks that run at the same time and reach each other's shared memory.
struct SimulatedCluster {
  SimulatedCluster(Device& device, int64_t blocks);
  Clocks clocks;
  std::vector<SimulatedBlock*> blocks;  // by their number in the cluster
  interpreter::Cluster memories;
  int64_t warps = 0;  // that meet
  interpreter::Meeting meeting;
  // What is known of those who have arrived, and of all at the last meeting, where arrivals and waits are apart.
  Knowledge told, known;
  bool in_halves = false;
  MeetingClock clock;
};

struct SimulatedBlock {
  // The next block of the cluster.
  SimulatedBlock(Device& owner, interpreter::Grid& grid, SimulatedCluster& all);
  void reset(uint32_t number_in_grid, std::array<int64_t, 3> index);
  // What no thread has waited for when all have ended.
  void check_completed();
  // A thread of another block reaches into this one's memory.
  void note_visit(Deed deed) { visits_[deed.thread] = deed.at; }

  Device& device;
  SimulatedCluster& cluster;
  int64_t rank;  // its number in the cluster
  interpreter::Block memory;
  Clocks clocks;
  Shadow shared;
  Barriers barriers;
  Queues queues;
  Mbarriers mbarriers;
  AsyncShadow async;
  std::vector<Warpgroup> warpgroups;
  int64_t free_registers = 0;  // of the launch's, given up by set_registers
  uint32_t number = 0;
  UnitClocks units;

 private:
  void check_visits();
  std::map<int64_t, Clock> visits_;  // the last, by thread of the cluster
};

}  // namespace tilewright::simulator
