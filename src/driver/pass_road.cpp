#include "driver/pass_road.h"

#include <set>

#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "driver/explain_gpu.h"
#include "driver/explain_operations.h"
#include "driver/gpu_stages.h"
#include "ir/rewrite.h"
#include "passes/pipeline.h"
#include "passes/schedule/other_steps.h"

namespace tilewright {
namespace {

[[noreturn]] void unknown(const std::string& name) {
  throw PassNameError(fmt::format("there is no pass '{}'; opt --list names them", name));
}

// A plan speaks of the tiles and loops that its fit makes, which are there once it is applied.
bool is_applied(const plan::Plan& plan, const ir::ProgramTables& tiles) {
  const auto has = [&](ir::BufferId id) { return id.index < tiles.buffers.size(); };
  const auto of_rings = [&](const plan::Ring& r) { return std::ranges::all_of(r.tiles, has); };
  const auto of_order = [&](const plan::Order& o) { return o.loop.index < tiles.vars.size(); };
  return std::ranges::all_of(plan.rings, of_rings) && std::ranges::all_of(plan.epilogue.staged, has) &&
         std::ranges::all_of(plan.orders, of_order);
}

std::vector<std::string> lines_of_plan(const passes::GpuProgram& p, size_t i) {
  const plan::Plan& plan = p.plans[i];
  if (is_applied(plan, p.tiles)) return plan::lines_of(plan, p.tiles);
  ir::TileProgram tiles = p.tiles;
  passes::fitted(tiles, ir::Launch(tiles.launches[i]), plan.fit);
  return plan::lines_of(plan, tiles);
}

std::vector<std::string> plans_of(const passes::GpuProgram& p) {
  std::vector<std::string> out;
  for (size_t i = 0; i < p.plans.size(); ++i) {
    for (const std::string& line : lines_of_plan(p, i))
      out.push_back(fmt::format("{}: {}", p.tiles.launches[i].name, line));
  }
  for (const auto& [at, why] : p.notes)
    out.push_back(fmt::format("line {}: no cp.async: {}", p.tiles.location(at).line, why));
  for (const auto& launch : p.handed_over)
    for (const passes::HandOver& h : launch)
      out.push_back(fmt::format("{} is handed over before line {}", p.tiles.buffer(h.buffer).name,
                                p.tiles.location(h.read).line));
  return out;
}

std::vector<std::string> placements_of(const passes::GpuProgram& p) {
  std::vector<std::string> out;
  for (size_t i = 0; i < p.placements.size(); ++i) {
    const passes::Placement& placement = p.placements[i];
    const auto line = [&](const std::string& text) {
      out.push_back(fmt::format("{}: {}", p.tiles.launches[i].name, text));
    };
    for (const auto& [id, layout] : placement.registers)
      line(fmt::format("{} in registers {}, by {}", p.tiles.buffer(id).name, layout.text(),
                       placement.decided_by.at(id)));
    for (const auto& [id, why] : placement.in_memory)
      line(fmt::format("{} in shared memory: {}", p.tiles.buffer(id).name, why));
    for (const auto& [id, by] : placement.partial) line(p.tiles.buffer(id).name + " in parts");
    ir::walk(p.tiles.launches[i].body, [&](const ir::Stmt& s) {
      const auto* gemm = s.as<ir::Gemm>();
      const auto found = placement.gemms.find(s->id);
      if (!gemm || found == placement.gemms.end()) return;
      const passes::GemmChoice& choice = found->second;
      line("gemm by " + instruction_text(*gemm, choice));
      if (!choice.why_not_wgmma.empty()) line("not wgmma: " + choice.why_not_wgmma);
      if (!choice.why_not_mma.empty()) line("not mma.sync: " + choice.why_not_mma);
    });
  }
  return out;
}

// How shared buffers lie, in the tables of threads.
std::vector<std::string> layouts_of(const passes::GpuProgram& p) {
  std::vector<std::string> out;
  if (passes::is_of_threads(p)) return out;
  for (const ir::Buffer& b : p.threads.buffers) {
    if (b.space != ir::Space::Shared || b.is_view()) continue;
    std::vector<std::string> strides;
    for (const ir::Expr& e : b.strides) strides.push_back(ir::print(e, p.threads));
    std::string how = "row after row";
    if (!strides.empty()) how = fmt::format("strides {}", fmt::join(strides, ", "));
    if (b.memory) how = b.memory->text();
    out.push_back(fmt::format("threads have {}, {}", b.name, how));
  }
  return out;
}

}  // namespace

std::vector<std::string> decisions_of(const passes::GpuProgram& p) {
  std::vector<std::string> out = plans_of(p);
  for (const ir::Buffer& b : p.tiles.buffers)
    if (b.panel > 0) out.push_back(fmt::format("{} in panels of {} bytes", b.name, b.panel));
  for (auto* lines : {placements_of, layouts_of})
    for (std::string& line : lines(p)) out.push_back(std::move(line));
  return out;
}

std::vector<std::string> PassRoad::until(const std::string& name) {
  std::vector<std::string> out;
  for (const passes::Pass& p : passes::all_passes()) {
    out.emplace_back(p.name);
    if (name == p.name) return out;
  }
  const size_t shared = out.size();
  out.emplace_back(kToLoops);
  if (name == kToLoops) return out;
  for (const passes::LoopPass& p : passes::loop_passes()) {
    out.emplace_back(p.name);
    if (name == p.name) return out;
  }
  out.resize(shared);
  for (const auto& table : {passes::gpu_tile_passes(), passes::gpu_plan_passes()})
    for (const passes::GpuPass& p : table) {
      out.emplace_back(p.name);
      if (name == p.name) return out;
    }
  unknown(name);
}

void PassRoad::run(const std::vector<std::string>& names) {
  std::vector<passes::Pass> shared;
  size_t at = 0;
  for (; at < names.size() && passes::find_pass(names[at]); ++at) shared.push_back(*passes::find_pass(names[at]));
  tiles_ = passes::run_passes(std::move(tiles_), shared, [](const char*, const ir::TileProgram&, double) {});
  if (at == names.size()) return;
  names[at] == kToLoops ? run_loops(names, at + 1) : run_gpu(names, at);
}

void PassRoad::run_loops(const std::vector<std::string>& names, size_t at) {
  loops_ = lower_cpu(tiles_, cpu_);
  for (; at < names.size(); ++at) {
    const passes::LoopPass* pass = passes::find_loop_pass(names[at]);
    if (!pass) unknown(names[at]);
    loops_ = passes::run_loop_passes(std::move(*loops_), {pass, 1}, features_of(cpu_),
                                     [](const char*, const ir::LoopProgram&) {});
  }
}

void PassRoad::run_gpu(const std::vector<std::string>& names, size_t at) {
  std::vector<passes::GpuPass> chosen;
  std::set<std::string_view> before;
  for (; at < names.size(); ++at) {
    const passes::GpuPass* pass = passes::find_gpu_pass(names[at]);
    if (!pass) unknown(names[at]);
    if (pass->needs && !before.contains(pass->needs))
      throw PassNameError(fmt::format("{} needs {} before it", pass->name, pass->needs));
    before.insert(pass->name);
    chosen.push_back(*pass);
  }
  gpu_ = passes::GpuProgram{.tiles = tiles_,
                            .target = gpu_target(arch_),
                            .attempts = std::vector<passes::PlanAttempt>(tiles_.launches.size())};
  std::vector<std::string> known;
  passes::run_gpu_passes(*gpu_, chosen, [&](const char* name, const passes::GpuProgram& p, double) {
    // Of the last pass alone, on all launches.
    if (name != std::string_view(names.back())) return void(known = decisions_of(p));
    for (std::string& line : decisions_of(p))
      if (std::find(known.begin(), known.end(), line) == known.end())
        decided_.push_back(line), known.push_back(std::move(line));
  });
  if (gpu_->misfit) throw CompileError(std::move(gpu_->misfit->why));
}

std::string PassRoad::text(const ir::PrintOptions& options) const {
  if (loops_) return ir::print(*loops_, options);
  std::string out = threads() ? ir::print(*threads(), options) : ir::print(tiles(), options);
  for (const std::string& line : decided_) out += fmt::format("# {}\n", line);
  return out;
}

}  // namespace tilewright
