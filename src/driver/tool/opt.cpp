// tilewright opt
#include "driver/pass_road.h"
#include "driver/tool/commands.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "passes/gpu_passes.h"
#include "passes/pipeline.h"

namespace tilewright::tool {
namespace {

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
