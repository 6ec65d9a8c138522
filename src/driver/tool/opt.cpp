// tilewright opt
#include "driver/tool/commands.h"
#include "ir/parse.h"
#include "ir/print.h"
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

}  // namespace

int opt(const OptArguments& arguments) {
  if (arguments.list) {
    for (const passes::Pass& p : passes::all_passes()) fmt::print("{:<16}{}\n", p.name, p.what);
    return kOk;
  }
  if (arguments.file.empty()) throw UsageError("opt needs a file");
  std::vector<passes::Pass> chosen;
  for (const std::string& name : arguments.passes) {
    const passes::Pass* pass = passes::find_pass(name);
    if (!pass) throw UsageError(fmt::format("there is no pass '{}'; opt --list names them", name));
    chosen.push_back(*pass);
  }
  const ir::TileProgram program = ir::parse(read_file(arguments.file), arguments.file);
  const ir::TileProgram result =
      passes::run_passes(program, chosen, [](const char*, const ir::TileProgram&, double) {});
  const ir::PrintOptions options{arguments.locations};
  const std::string text = ir::print(result, options);
  fmt::print("{}", arguments.diff ? diff(ir::print(program, options), text) : text);
  return kOk;
}

}  // namespace tilewright::tool
