// tilewright compile
#include <chrono>
#include <nlohmann/json.hpp>

#include "driver/build_plan.h"
#include "driver/canonical.h"
#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "driver/hand_in_plan.h"
#include "driver/plan_json.h"
#include "driver/tool/commands.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower_to_loops.h"
#include "passes/pipeline.h"
#include "support/diagnostic.h"

namespace tilewright::tool {
namespace {

using Json = nlohmann::ordered_json;

// Milliseconds of each step, in order.
class Times {
 public:
  void step(const char* name) {
    const auto now = std::chrono::steady_clock::now();
    list_.emplace_back(name, std::chrono::duration<double, std::milli>(now - last_).count());
    last_ = now;
  }
  void add(const char* name, double milliseconds) {
    list_.emplace_back(name, milliseconds);
    last_ = std::chrono::steady_clock::now();
  }
  void show() const {
    for (const auto& [name, ms] : list_) fmt::print(stderr, "{:>10.3f} ms  {}\n", ms, name);
  }
  Json json() const {
    Json out = Json::object();
    for (const auto& [name, ms] : list_) out[name] = ms;
    return out;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::vector<std::pair<std::string, double>> list_;
};

const char* origin_name(runtime::KernelOrigin origin) {
  switch (origin) {
    case runtime::KernelOrigin::Memory: return "memory";
    case runtime::KernelOrigin::Disk: return "cache";
    case runtime::KernelOrigin::Compiler: return "compiler";
  }
  return "";
}

// The text of the stage that was asked for; without one the kernel is built, and the text says what came out.
std::string compiled(const CompileArguments& arguments, Times& times) {
  ir::TileProgram tiles = ir::parse(read_file(arguments.file), arguments.file);
  times.step("parse");
  ir::check_valid(tiles);
  if (!arguments.plan.empty()) tiles = with_plan(std::move(tiles), read_file(arguments.plan));
  check_plans(tiles);
  times.step("verify");
  const std::string& stage = arguments.stage;
  if (stage == "tiles") return ir::print(tiles);
  tiles = canonical(tiles, [&](const char* name, const ir::TileProgram&, double ms) { times.add(name, ms); });
  if (stage == "canonical") return ir::print(tiles);
  if (stage == "launch_plan") return plan_json(build_plan(tiles)).dump(2) + "\n";
  if (stage == "loops") return ir::print(lower_cpu(tiles, runtime::processor_features()));
  if (stage == "plan" || stage == "planned" || stage == "threads") {
    const passes::ThreadLowering lowered =
        passes::lower_to_threads(passes::assume_fast_calls(tiles), gpu_target(arguments.arch));
    if (stage == "plan") return passes::print_plans(lowered);
    return stage == "planned" ? ir::print(lowered.planned) : ir::print(lowered.threads);
  }
  Dump dump(tiles.name);
  if (stage == "cuda") return write_cuda(passes::assume_fast_calls(tiles), arguments.arch, dump).kernel.text;
  build_plan(tiles);
  times.step("plan");
  const runtime::ProcessorFeatures processor = runtime::processor_features();
  const CpuKernel kernel = write_cpu(tiles, processor, dump);
  times.step("write");
  if (stage == "source") return kernel.text;
  runtime::KernelOrigin origin;
  runtime::build_cpu_kernel({tiles.name, kernel.text, processor}, &origin);
  times.step("build");
  if (arguments.json)
    return Json{{"program", tiles.name},
                {"engine", "cpu"},
                {"kernel", origin_name(origin)},
                {"source_bytes", kernel.text.size()},
                {"milliseconds", times.json()}}
               .dump(2) +
           "\n";
  return fmt::format("{}: cpu, {} bytes of C++, kernel from the {}\n", tiles.name, kernel.text.size(),
                     origin_name(origin));
}

}  // namespace

int compile_file(const CompileArguments& arguments) {
  Times times;
  const std::string text = compiled(arguments, times);
  if (arguments.json && !arguments.stage.empty() && arguments.stage != "launch_plan") {
    fmt::print("{}\n", Json{{"stage", arguments.stage}, {"text", text}, {"milliseconds", times.json()}}.dump(2));
  } else {
    fmt::print("{}", text);
  }
  if (arguments.times) times.show();
  return kOk;
}

}  // namespace tilewright::tool
