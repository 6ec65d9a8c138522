#include "driver/explain_gpu.h"

#include "driver/cuda_engine.h"
#include "driver/explain.h"
#include "driver/explain_operations.h"
#include "driver/explain_roles.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "passes/assume_fast_calls.h"
#include "passes/threads/shared_layout.h"
#include "plan/schedule.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

using passes::ThreadLowering;

// ---- plans

std::string fits_text(const plan::Limits& limits) {
  if (!limits.fits) return ", the program's own threads and steps";
  return limits.live == plan::Limits{}.live ? "" : fmt::format(", tiles of at most {} registers a thread", limits.live);
}

std::string plan_text(const passes::PlanAttempt& plan) {
  const plan::Limits& limits = plan.limits;
  const std::string memory =
      fmt::format("{}{}", plan.over ? ", buffers over each other" : "", plan.tight ? ", rows without gaps" : "");
  if (limits.slots < (limits.side_by_side ? 1 : 2)) return fmt::format("no loader role{}", memory);
  const char* const texts[] = {"results staged whole", "results staged in chunks", "results not staged",
                               "results straight from registers"};
  const char* staging = texts[static_cast<size_t>(limits.staging)];
  return fmt::format(
      "rings of at most {} slot{}, {}{}{}{}{}{}{}{}{}{}{}", limits.slots, limits.slots == 1 ? "" : "s", staging,
      limits.next_tile ? "" : ", nothing of the next tile ahead", limits.second_slots ? "" : ", one slot each",
      fits_text(limits), limits.one_branch ? ", roles in one branch" : "",
      limits.other_registers ? ", other registers for the loader" : "",
      limits.overlap ? "" : ", gemms waited for at once", limits.side_by_side ? "" : ", one block a multiprocessor",
      limits.by_iteration ? "" : ", no teams that take iterations in turn",
      limits.without ? fmt::format(", {}", limits.without->gives_way) : "", memory);
}

std::vector<std::string> ladder_of(const DeviceChoice& choice) {
  const ThreadLowering& l = choice.lowering;
  const bool has_loader =
      std::any_of(l.plans.begin(), l.plans.end(), [](const plan::Plan& p) { return p.has_loader(); });
  std::vector<std::string> out;
  const auto line = [&](const passes::TriedPlan& t) {
    const std::string of = l.plans.size() > 1 ? fmt::format("{}: ", l.tiles.launches[t.launch].name) : std::string();
    out.push_back(
        fmt::format("{}{}: {}", of, plan_text(t.attempt), t.why_not.empty() ? "taken" : "lost: " + t.why_not));
  };
  for (const passes::TriedPlan& t : choice.lost) line(t);
  // Where no launch has rings of a loader, the limits limited nothing.
  if (!has_loader && l.tried.size() == l.plans.size() && out.empty()) return out;
  for (const passes::TriedPlan& t : l.tried)
    if (!t.why_not.empty() || l.plans.size() == 1 || l.plans[t.launch].has_loader()) line(t);
  if (has_loader)
    out.push_back("shorter rings, results not staged, no loader role: not tried, for what is above them fits");
  return out;
}

// ---- layouts

MemoryLayout memory_of(const ir::Buffer& b) {
  if (b.memory) return *b.memory;
  std::vector<int64_t> shape, strides;
  for (const ir::Expr& e : b.shape) shape.push_back(ir::constant_int(e).value_or(1));
  for (const ir::Expr& e : b.strides) strides.push_back(ir::constant_int(e).value_or(1));
  return strides.empty() ? MemoryLayout::row_major(shape, b.type.storage_bits())
                         : MemoryLayout(shape, strides, b.type.storage_bits());
}

// Who decided how a shared buffer lies.
std::string reason_of(const ir::Buffer& b) {
  if (!b.memory) return b.strides.empty() ? "nothing: row after row" : "ldmatrix: rows an odd number of 16 bytes apart";
  const int64_t span = b.memory->swizzle().span();
  return b.memory->swizzle().is_hardware() && span > 1 ? fmt::format("TMA or wgmma: panels of {} bytes, swizzled", span)
                                                       : "the threads that access it: every bank as often";
}

// Slots of the buffers that are rings.
std::map<std::string, int64_t> rings_of(const ThreadLowering& l, size_t number) {
  std::map<std::string, int64_t> out;
  for (const plan::Ring& ring : l.plans[number].rings)
    for (const std::string& tile : names_of(ring, l.tiles)) out[tile] = ring.slots;
  ir::walk(l.tiles.launches[number].body, [&](const ir::Stmt& s) {
    const auto* n = s.as<ir::Copy>();
    const auto* map = s.as<ir::Map>();
    const auto* store = map && !map->body.empty() ? map->body.back().as<ir::Store>() : nullptr;
    const bool copies = n && n->completion.queue == ir::Queue::CpAsync;
    if (!copies && (!store || store->queue != ir::Queue::CpAsync)) return;
    const ir::Buffer& b = l.tiles.buffer(copies ? n->to.buffer : store->to.buffer);
    out[b.name] = ir::constant_int(b.shape[0]).value_or(1);
  });
  return out;
}

void add_layouts(const ThreadLowering& l, size_t number, GpuLaunchFacts& out) {
  const passes::Placement& placement = l.placements[number];
  const std::map<std::string, int64_t> rings = rings_of(l, number);
  for (const auto& [id, layout] : placement.registers)
    out.layouts.push_back({l.tiles.buffer(id).name, placement.decided_by.at(id), layout, {}});
  for (const auto& [id, why] : placement.in_memory)
    out.in_memory.push_back(fmt::format("'{}' lives in shared memory: {}", l.tiles.buffer(id).name, why));
  const auto lives = shared_lives(l.threads, l.threads.launches[number]);
  for (ir::BufferId id : used_roots(l.threads.launches[number].body, l.threads)) {
    const ir::Buffer& b = l.threads.buffer(id);
    if (b.place < 0) continue;
    const auto ring = rings.find(b.name);
    out.shared.push_back({b.name, b.place, passes::shared_bytes_of(b),
                          b.space == ir::Space::Barrier ? static_cast<int64_t>(b.arrive_counts.size())
                          : ring != rings.end()         ? ring->second
                                                        : 1,
                          lives.contains(id) ? lives.at(id) : std::vector<SharedLife>()});
    if (b.space == ir::Space::Shared && b.rank() > 0) out.layouts.push_back({b.name, reason_of(b), {}, memory_of(b)});
  }
  std::sort(out.shared.begin(), out.shared.end(),
            [](const SharedRange& a, const SharedRange& b) { return a.begin < b.begin; });
}

// ---- what the device compiler says

// With the device compiler's verdict if it is asked for and can be had. One plan is lowered where it cannot.
DeviceChoice choice_of(const ir::TileProgram& tiles, const std::string& arch, bool compile, Dump& dump, bool stages) {
  std::string no_binary = "not asked";
  if (compile) {
    try {
      runtime::Nvrtc::get();
      return choose_by_compiler(tiles, arch, dump, stages);
    } catch (const CompileError& e) {
      no_binary = e.diagnostic().message;
    }
  }
  DeviceChoice out = choose_unseen(tiles, arch, dump, stages);
  out.no_binary = std::move(no_binary);
  return out;
}

void add_resources(const DeviceChoice& choice, const std::string& arch, GpuFacts& out) {
  const auto& launches = choice.text.kernel.plan.launches;
  for (size_t i = 0; i < out.launches.size(); ++i) out.launches[i].shared_bytes = launches[i].dynamic_shared_bytes;
  if (!choice.binary) {
    out.compiler = choice.no_binary;
    return;
  }
  const runtime::DeviceLog& log = choice.binary->log;
  out.compiler = "NVRTC " + runtime::Nvrtc::get().version();
  for (const runtime::PtxasRemark& r : log.remarks)
    out.remarks.push_back(r.code.empty() ? r.message : r.code + ": " + r.message);
  for (size_t i = 0; i < out.launches.size(); ++i) {
    const runtime::KernelResources* found = log.kernel(launches[i].function);
    if (!found) continue;
    GpuLaunchFacts& launch = out.launches[i];
    launch.resources = *found;
    launch.occupancy =
        gpu_target(arch).occupancy(launch.threads, found->registers, launch.shared_bytes + found->shared_bytes);
  }
}

// ---- floors

void add_floors(const Explanation& e, const target::Rates& rates, GpuFacts& out) {
  if (e.tensor_bytes) out.memory_floor = static_cast<double>(*e.tensor_bytes) / rates.bytes;
  double seconds = 0;
  for (const LaunchFacts& launch : e.launches)
    for (const OperationFacts& op : launch.operations) {
      const std::optional<int64_t> work = op.products ? op.products : op.flops;
      if (!work || !op.executions) return;
      if (*work > 0) seconds += static_cast<double>(*work) * static_cast<double>(*op.executions) / op.rate;
    }
  out.compute_floor = seconds;
}

}  // namespace

void add_gpu_facts(const ir::TileProgram& program, const NamedValues& values, const std::string& arch, bool compile,
                   size_t plans, const std::function<void(const DeviceChoice&)>& chosen, Explanation& out) {
  const target::GpuTarget target = gpu_target(arch);
  std::vector<std::string> assumptions, broken;
  const ir::TileProgram tiles = passes::assume_what_holds(program, [&](const ir::Assumption& a, size_t) {
    const bool holds = value_of(a.condition, program, values) != 0;
    assumptions.push_back(ir::print(a.condition, program));
    if (!holds) broken.push_back(assumptions.back());
    return holds;
  });
  const bool general = !broken.empty();
  Dump dump(tiles.name);
  const bool stages = chosen != nullptr;
  const DeviceChoice choice = choice_of(tiles, arch, compile, dump, stages);
  const ThreadLowering& l = choice.lowering;
  GpuFacts& gpu = out.gpu.emplace();
  gpu.assumptions = general ? std::move(broken) : std::move(assumptions), gpu.general = general;
  gpu.ladder = ladder_of(choice);
  const std::vector<passes::PricedPlan> prices = price_plans(tiles, l, known_values(tiles, values), plans);
  for (size_t i = 0; i < l.threads.launches.size(); ++i) {
    GpuLaunchFacts& launch = gpu.launches.emplace_back();
    const plan::Plan& plan = launch.plan = l.plans[i];
    launch.plan_lines = plan::lines_of(plan, l.tiles);
    launch.priced = prices[i];
    for (ir::BufferId id : plan.epilogue.staged) launch.staged.push_back(l.tiles.buffer(id).name);
    for (const plan::Ring& ring : plan.rings) {
      RingFacts& facts = launch.rings.emplace_back();
      facts.slots = ring.slots, facts.bytes = ring.bytes;
      facts.tiles = names_of(ring, l.tiles);
    }
    launch.fitted = text(plan.fit, l.tiles);
    for (const plan::Use& use : plan.work.uses)
      launch.schedules.push_back({use, text(use, l.tiles), value_of(use, l.tiles)});
    launch.order = passes::launch_order(l.tiles.launches[i]);
    for (const passes::HandOver& h : l.handed_over[i])
      launch.handed_over.push_back(
          fmt::format("{} before line {}", l.tiles.buffer(h.buffer).name, l.tiles.location(h.read).line));
    launch.threads = l.threads.launches[i].thread_count();
    launch.begins_early = choice.text.kernel.plan.launches[i].programmatic_serialization;
    add_layouts(l, i, launch);
    launch.roles = roles_of(l.tiles, l.tiles.launches[i], l.plans[i]);
    add_operation_facts(tiles, l, i, target, out.launches[i]);
  }
  add_resources(choice, arch, gpu);
  if (chosen) chosen(choice);
  add_floors(out, target.rates, gpu);
}

std::vector<RingTurn> ring_turns(int64_t slots) {
  std::vector<RingTurn> turns(static_cast<size_t>(2 * slots + 2));
  for (size_t at = 0; at < turns.size(); ++at) {
    RingTurn& turn = turns[at];
    const auto all = static_cast<size_t>(slots);
    turn.slot = static_cast<int64_t>(at % all);
    turn.filled_from = std::max(at > 0 ? turns[at - 1].filled : 0, at >= all ? turns[at - all].used : 0);
    turn.filled = turn.filled_from + 1;
    turn.used_from = std::max(at > 0 ? turns[at - 1].used : 0, turn.filled);
    turn.used = turn.used_from + 2;
  }
  return turns;
}

std::vector<std::string> ring_timeline(int64_t slots) {
  const std::vector<RingTurn> turns = ring_turns(slots);
  const auto row = [&](std::string out, int64_t RingTurn::*from, int64_t RingTurn::*to) {
    for (int64_t time = 0; time < turns.back().used; ++time) {
      const auto at =
          std::find_if(turns.begin(), turns.end(), [&](const RingTurn& t) { return time >= t.*from && time < t.*to; });
      out += at == turns.end() ? "  ." : fmt::format("{:>3}", at->slot);
    }
    return out;
  };
  return {row("loader |", &RingTurn::filled_from, &RingTurn::filled),
          row("math   |", &RingTurn::used_from, &RingTurn::used)};
}

}  // namespace tilewright
