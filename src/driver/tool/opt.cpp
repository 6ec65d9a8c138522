// tilewright opt
#include <set>

#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "driver/tool/commands.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "passes/gpu_passes.h"
#include "passes/pipeline.h"

namespace tilewright::tool {
namespace {

constexpr const char* kToLoops = "lower_to_loops";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// The lines that differ, with - and +, along a longest common subsequence.
std::string diff(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> a = lines_of(before), b = lines_of(after);
  std::vector<std::vector<uint32_t>> common(a.size() + 1, std::vector<uint32_t>(b.size() + 1));
  for (size_t i = a.size(); i-- > 0;)
    for (size_t j = b.size(); j-- > 0;)
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  std::string out;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i, ++j;
    } else if (j == b.size() || (i < a.size() && common[i + 1][j] >= common[i][j + 1])) {
      out += fmt::format("{:>4} - {}\n", i + 1, a[i]);
      ++i;
    } else {
      out += fmt::format("{:>4} + {}\n", j + 1, b[j]);
      ++j;
    }
  }
  return out;
}

void list_passes() {
  const auto row = [](const char* name, const char* what) { fmt::print("  {:<24}{}\n", name, what); };
  fmt::print("for every engine\n");
  for (const passes::Pass& p : passes::all_passes()) row(p.name, p.what);
  fmt::print("for the CPU\n");
  row(kToLoops, "every launch becomes a loop over blocks, every tile operation loops");
  for (const passes::LoopPass& p : passes::loop_passes()) row(p.name, p.what);
  fmt::print("for GPUs (--arch)\n");
  for (const auto& table : {passes::gpu_tile_passes(), passes::gpu_plan_passes()})
    for (const passes::GpuPass& p : table) row(p.name, p.what);
}

// Passes of one road, in the order in which they are named, from tiles on.
class Road {
 public:
  Road(ir::TileProgram program, const OptArguments& arguments) : arguments_(arguments), tiles_(std::move(program)) {}

  void run(const std::vector<std::string>& names) {
    std::vector<passes::Pass> shared;
    size_t at = 0;
    for (; at < names.size() && passes::find_pass(names[at]); ++at) shared.push_back(*passes::find_pass(names[at]));
    tiles_ = passes::run_passes(std::move(tiles_), shared, [](const char*, const ir::TileProgram&, double) {});
    if (at == names.size()) return;
    names[at] == kToLoops ? run_loops(names, at + 1) : run_gpu(names, at);
  }
  std::string text(const ir::PrintOptions& options) const {
    if (loops_) return ir::print(*loops_, options);
    if (!gpu_) return ir::print(tiles_, options);
    return passes::is_of_threads(*gpu_) ? ir::print(gpu_->threads, options) : ir::print(gpu_->tiles, options);
  }

 private:
  static void unknown(const std::string& name) {
    throw UsageError(fmt::format("there is no pass '{}'; opt --list names them", name));
  }
  void run_loops(const std::vector<std::string>& names, size_t at) {
    const runtime::ProcessorFeatures features = runtime::restrict_features(runtime::detect_processor(), "portable");
    loops_ = lower_cpu(tiles_, features);
    for (; at < names.size(); ++at) {
      const passes::LoopPass* pass = passes::find_loop_pass(names[at]);
      if (!pass) return unknown(names[at]);
      loops_ = passes::run_loop_passes(std::move(*loops_), {pass, 1}, {}, [](const char*, const ir::LoopProgram&) {});
    }
  }
  void run_gpu(const std::vector<std::string>& names, size_t at) {
    std::vector<passes::GpuPass> chosen;
    std::set<std::string_view> before;
    for (; at < names.size(); ++at) {
      const passes::GpuPass* pass = passes::find_gpu_pass(names[at]);
      if (!pass) return unknown(names[at]);
      if (pass->needs && !before.contains(pass->needs))
        throw UsageError(fmt::format("{} needs {} before it", pass->name, pass->needs));
      before.insert(pass->name);
      chosen.push_back(*pass);
    }
    gpu_ = passes::GpuProgram{.tiles = tiles_,
                              .target = gpu_target(arguments_.arch),
                              .attempts = std::vector<passes::PlanAttempt>(tiles_.launches.size())};
    passes::run_gpu_passes(*gpu_, chosen, [](const char*, const passes::GpuProgram&, double) {});
    if (gpu_->misfit) throw CompileError(std::move(gpu_->misfit->why));
  }

  const OptArguments& arguments_;
  ir::TileProgram tiles_;
  std::optional<ir::LoopProgram> loops_;
  std::optional<passes::GpuProgram> gpu_;
};

// All passes of a road up to the one of this name.
std::vector<std::string> passes_until(const std::string& name) {
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
  throw UsageError(fmt::format("there is no pass '{}'; opt --list names them", name));
}

}  // namespace

int opt(const OptArguments& arguments) {
  if (arguments.list) {
    list_passes();
    return kOk;
  }
  if (arguments.file.empty()) throw UsageError("opt needs a file");
  const std::vector<std::string> names = arguments.until.empty() ? arguments.passes : passes_until(arguments.until);
  const ir::TileProgram program = ir::parse(read_file(arguments.file), arguments.file);
  const ir::PrintOptions options{arguments.locations};
  Road road(program, arguments);
  road.run(names);
  const std::string text = road.text(options);
  fmt::print("{}", arguments.diff ? diff(ir::print(program, options), text) : text);
  return kOk;
}

}  // namespace tilewright::tool
