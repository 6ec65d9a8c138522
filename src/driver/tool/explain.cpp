// tilewright explain
#include "driver/explain.h"

#include "driver/tool/commands.h"
#include "driver/tool/program_call.h"
#include "ir/parse.h"

namespace tilewright::tool {
namespace {

NamedValues values_of(const std::vector<std::string>& set) {
  NamedValues values;
  for (const std::string& text : set) {
    const auto [name, value] = name_and_value(text, "--set");
    const std::optional<int64_t> number = number_from<int64_t>(value);
    if (!number) throw UsageError(fmt::format("--set takes name=number, an integer of 64 bits, not '{}'", text));
    values[name] = *number;
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
