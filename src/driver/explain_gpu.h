// What a GPU makes of a program: the plan and those that lost, the instruction of each copy and gemm with the rejected
// candidates, layouts, roles and rings, the map of shared memory, what the device compiler reports.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/arguments.h"
#include "driver/shared_lives.h"
#include "ir/program.h"
#include "layout/fragment.h"
#include "layout/memory.h"
#include "passes/launch_order.h"
#include "passes/plan_search.h"
#include "runtime/nvrtc_log.h"
#include "target/gpu.h"

namespace tilewright {

struct DeviceChoice;
struct Explanation;

// Where the elements of an on-chip buffer are: one of the two layouts.
struct LayoutFacts {
  std::string name, decided_by;
  std::optional<FragmentLayout> fragment;  // in registers
  std::optional<MemoryLayout> memory;      // in shared memory
};

struct SharedRange {
  std::string name;
  int64_t begin = 0, bytes = 0;
  int64_t slots = 1;                   // of a ring
  std::vector<SharedLife> lives = {};  // none of barriers
};

// Warps with a job of their own, and what each of their turns does, as indented lines.
struct RoleFacts {
  std::string name;
  int64_t begin = 0, end = 0;  // threads
  std::vector<std::string> steps;
};

// One use of a slot, in units of time of which filling a slot takes one and using it two.
struct RingTurn {
  int64_t slot = 0, filled_from = 0, filled = 0, used_from = 0, used = 0;
};

struct RingFacts {
  std::vector<std::string> tiles;
  int64_t slots = 1, bytes = 0;  // bytes of a slot
};

// A kind of schedule that the plan has.
struct ScheduleFacts {
  plan::Use use;
  std::string says, value;
};

struct GpuLaunchFacts {
  plan::Plan plan;
  std::vector<std::string> plan_lines;  // as a user may hand them in
  passes::PricedPlan priced;
  std::vector<RingFacts> rings;
  std::vector<ScheduleFacts> schedules;
  std::string fitted;                    // what was changed so that registers suffice
  passes::LaunchOrder order;             // among launches; kept around the roles, if there are any
  std::vector<std::string> staged;       // fragments that leave through shared memory
  std::vector<std::string> handed_over;  // between roles, behind a barrier that the program lacks
  bool begins_early = false;             // while the launches before it run, for which it waits
  int64_t threads = 0, shared_bytes = 0;
  std::vector<LayoutFacts> layouts;
  std::vector<std::string> in_memory;  // fragments that no registers hold, and why
  std::vector<SharedRange> shared;     // by address
  std::vector<RoleFacts> roles;
  std::optional<runtime::KernelResources> resources;
  std::optional<target::Occupancy> occupancy;
};

struct GpuFacts {
  std::string arch, device;         // the device whose rates the floors take
  std::vector<std::string> ladder;  // the plans in order, best first: which lost and why, which was taken
  // What is assumed of a call; `general`: the values contradict it, and the facts are those of the general version.
  std::vector<std::string> assumptions;
  bool general = false;
  std::vector<GpuLaunchFacts> launches;
  std::string compiler;  // "NVRTC 13.0", or why there are no resources
  std::vector<std::string> remarks;
  // Seconds below which no call can be: the operations at the rates of their units; the tensors' bytes, each once.
  std::optional<double> compute_floor, memory_floor;
};

// `program`: canonical, as the facts in `out` speak of it. CompileError if the engine refuses the program.
void add_gpu_facts(const ir::TileProgram& program, const NamedValues& values, const std::string& arch, bool compile,
                   size_t plans, const std::function<void(const DeviceChoice&)>& chosen, Explanation& out);

// The first turns of a ring.
std::vector<RingTurn> ring_turns(int64_t slots);
// The same as a picture, one column a unit of time, where using a slot takes twice as long as filling it: the
// numbers of the slots that the loader fills and the others use.
std::vector<std::string> ring_timeline(int64_t slots);

}  // namespace tilewright
