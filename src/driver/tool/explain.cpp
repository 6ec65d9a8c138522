// tilewright explain
#include "driver/explain.h"

#include <charconv>

#include "driver/tool/commands.h"
#include "ir/parse.h"

namespace tilewright::tool {
namespace {

NamedValues values_of(const std::vector<std::string>& set) {
  NamedValues values;
  for (const std::string& text : set) {
    const size_t at = text.find('=');
    int64_t value = 0;
    const char* end = text.data() + text.size();
    if (at == std::string::npos || std::from_chars(text.data() + at + 1, end, value).ptr != end)
      throw UsageError(fmt::format("--set takes name=number, not '{}'", text));
    values[text.substr(0, at)] = value;
  }
  return values;
}

}  // namespace

int explain(const ExplainArguments& arguments) {
  const NamedValues values = values_of(arguments.set);
  const ir::TileProgram program = ir::parse(read_file(arguments.file), arguments.file);
  const Explanation e = arguments.arch.empty() ? tilewright::explain(program, values, runtime::processor_features())
                                               : explain_gpu(program, values, arguments.arch, arguments.compile);
  fmt::print("{}", arguments.json ? to_json(e) + "\n" : to_text(e));
  return kOk;
}

}  // namespace tilewright::tool
