// tilewright plot-layout
#include <sys/stat.h>

#include "driver/explain.h"
#include "driver/tool/commands.h"
#include "ir/parse.h"
#include "layout/picture.h"
#include "support/diagnostic.h"

namespace tilewright::tool {
namespace {

std::string drawn(const LayoutFacts& l, const PlotArguments& arguments) {
  if (arguments.svg)
    return l.fragment ? fragment_svg(*l.fragment, arguments.limit) : memory_svg(*l.memory, arguments.limit);
  return l.fragment ? fragment_table(*l.fragment, arguments.limit) : memory_table(*l.memory, arguments.limit);
}

// A layout's own text: that of memory names the bits of an element, that of a fragment does not.
LayoutFacts of_text(const std::string& text) {
  const SourceLocation here{"layout", 1, 1};
  if (text.find("; bits ") != std::string::npos) return {"", "", {}, parse_memory_layout(text, here)};
  return {"", "", parse_fragment_layout(text, here), {}};
}

std::vector<LayoutFacts> of_program(const PlotArguments& arguments) {
  const Explanation e =
      explain_gpu(ir::parse(read_file(arguments.file), arguments.file), {}, arguments.arch, /*compile=*/false);
  if (e.refused) throw CompileError(*e.refused);
  std::vector<LayoutFacts> out;
  std::set<std::string> names;
  for (const GpuLaunchFacts& launch : e.gpu->launches)
    for (const LayoutFacts& l : launch.layouts) {
      names.insert(l.name);
      if (arguments.buffer.empty() || l.name == arguments.buffer) out.push_back(l);
    }
  if (out.empty())
    throw UsageError(
        fmt::format("no buffer '{}' has a layout; these have: {}", arguments.buffer, fmt::join(names, ", ")));
  return out;
}

}  // namespace

int plot_layout(const PlotArguments& arguments) {
  if (arguments.file.empty() == arguments.layout.empty())
    throw UsageError("plot-layout takes a layout's text, or --file with a program");
  const std::vector<LayoutFacts> layouts =
      arguments.file.empty() ? std::vector<LayoutFacts>{of_text(arguments.layout)} : of_program(arguments);
  if (arguments.svg && layouts.size() > 1 && arguments.out.empty())
    throw UsageError("several pictures: name one with --buffer, or a folder with --out");
  if (!arguments.out.empty()) mkdir(arguments.out.c_str(), 0777);
  for (const LayoutFacts& l : layouts) {
    const std::string picture = drawn(l, arguments);
    if (!arguments.out.empty()) {
      const std::string name = l.name.empty() ? "layout" : l.name;
      write_file(fmt::format("{}/{}.{}", arguments.out, name, arguments.svg ? "svg" : "txt"), picture);
      continue;
    }
    if (!l.name.empty() && !arguments.svg) fmt::print("{}, decided by {}\n", l.name, l.decided_by);
    fmt::print("{}", picture);
  }
  return kOk;
}

}  // namespace tilewright::tool
