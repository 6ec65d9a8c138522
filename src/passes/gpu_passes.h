// The passes of the road to GPUs, in order: what each does, and why it stands where it does.
#pragma once
#include <optional>
#include <span>
#include <string_view>

#include "ir/program.h"
#include "passes/named_barriers.h"
#include "passes/schedule/decide_plan.h"
#include "passes/schedule/hand_over.h"
#include "passes/threads/placement.h"
#include "support/diagnostic.h"
#include "support/function_ref.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Why the plan of a launch cannot be: what it wants of shared memory, or what it is without.
struct Misfit {
  size_t launch;
  Diagnostic why;
};

// What a plan of a launch is made under.
struct PlanAttempt {
  plan::Limits limits;
  bool over = false;    // shared buffers may lie over each other
  bool tight = false;   // rows of shared buffers lie without gaps, whatever banks they meet in
  bool gathers = true;  // maps of pipelined loops may gather rows ahead, into rings
  bool operator==(const PlanAttempt&) const = default;
};

// A program on its road, and what has become known of it.
struct GpuProgram {
  ir::TileProgram tiles;
  target::GpuTarget target;
  std::vector<PlanAttempt> attempts;                    // by launch
  std::vector<plan::Plan> plans = {};                   // by launch
  std::vector<std::vector<ir::VarId>> blocks = {};      // by launch: variables of blocks (apply_plan.h)
  ir::TileProgram planned = {};                         // with rings and roles, in words that a user has too
  std::vector<Placement> placements = {};               // by launch
  std::vector<NamedBarriers> barriers = {};             // by launch
  std::vector<std::vector<HandOver>> handed_over = {};  // by launch: between roles, without a barrier of the program's
  std::vector<std::pair<ir::LocationId, std::string>> notes = {};  // why pipelined loops run without cp.async
  std::set<size_t> gathering = {};                                 // launches with such rings
  ir::ThreadProgram threads = {};
  std::optional<Misfit> misfit = {};  // no pass runs after one that says so
};

struct GpuPass {
  const char* name;
  const char* what;
  const char* here;  // why it stands where it does
  // One of them: on the whole program, or on a launch. Neighbours of the second kind run on one launch after the other,
  // all of them on the first before the second.
  void (*run)(GpuProgram&) = nullptr;
  void (*run_launch)(GpuProgram&, size_t launch) = nullptr;
  const char* needs = nullptr;  // a pass whose findings it reads, and with it those that that one needs
  bool (*wanted)(const target::GpuFeatures& has) = nullptr;  // on GPUs that have this; null: on all
};

// Tiles in, tiles out, whatever the plan.
std::span<const GpuPass> gpu_tile_passes();
// Once for each plan that is tried: the plan, its parts, the code of a thread.
std::span<const GpuPass> gpu_plan_passes();
// Of either; null: there is none.
const GpuPass* find_gpu_pass(std::string_view name);

// Whether the code of threads is there, for every launch.
bool is_of_threads(const GpuProgram& program);

// Whether the language has words for what the last pass left. Tiles have none for reducers that maps fill
// (copies_to_maps) and for fragments of which lanes hold parts (late_sums); threads have words for everything.
bool has_words(const GpuProgram& program);

// Told after each pass: its name, what it left, the milliseconds that it took.
using GpuObserver = function_ref<void(const char* name, const GpuProgram& program, double milliseconds)>;

// In order, until there is a misfit. InternalError that names the pass where what it leaves is no valid program.
void run_gpu_passes(GpuProgram& program, std::span<const GpuPass> passes, GpuObserver observer);

}  // namespace tilewright::passes
