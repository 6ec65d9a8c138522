// tilewright opt
#include "driver/pass_road.h"
#include "driver/text_diff.h"
#include "driver/tool/commands.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "passes/gpu_passes.h"
#include "passes/pipeline.h"

namespace tilewright::tool {
namespace {

// The lines that differ, with - and +.
std::string diff(std::string_view before, std::string_view after) {
  std::string out;
  for (const DiffLine& line : text_diff(before, after))
    if (line.kind != '=') out += fmt::format("{:>4} {} {}\n", line.number, line.kind, line.text);
  return out;
}

void list_passes() {
  const auto row = [](const char* name, const char* what) { fmt::print("  {:<24}{}\n", name, what); };
  fmt::print("for every engine\n");
  for (const passes::Pass& p : passes::all_passes()) row(p.name, p.what);
  fmt::print("for the CPU\n");
  row(PassRoad::kToLoops, "every launch becomes a loop over blocks, every tile operation loops");
  for (const passes::LoopPass& p : passes::loop_passes()) row(p.name, p.what);
  fmt::print("for GPUs (--arch)\n");
  for (const auto& table : {passes::gpu_tile_passes(), passes::gpu_plan_passes()})
    for (const passes::GpuPass& p : table) row(p.name, p.what);
}

}  // namespace

int opt(const OptArguments& arguments) {
  if (arguments.list) {
    list_passes();
    return kOk;
  }
  if (arguments.file.empty()) throw UsageError("opt needs a file");
  const ir::TileProgram program = ir::parse(read_file(arguments.file), arguments.file);
  const ir::PrintOptions options{arguments.locations};
  try {
    PassRoad road(program, arguments.arch, runtime::features_of_level(arguments.cpu));
    road.run(arguments.until.empty() ? arguments.passes : PassRoad::until(arguments.until));
    const std::string text = road.text(options);
    fmt::print("{}", arguments.diff ? diff(ir::print(program, options), text) : text);
  } catch (const PassNameError& error) {
    throw UsageError(error.what());
  }
  return kOk;
}

}  // namespace tilewright::tool
