// tilewright check
#include "driver/check_program.h"
#include "driver/tool/commands.h"
#include "driver/tool/program_call.h"
#include "support/diagnostic.h"

namespace tilewright::tool {

int check(const CheckArguments& options) {
  std::map<std::string, double> values;
  for (const std::string& text : options.set) {
    const auto [name, value] = name_and_value(text, "check");
    const std::optional<double> number = number_from<double>(value);
    if (!number) throw UsageError(fmt::format("'{}' is not a number", value));
    values[name] = *number;
  }
  const Program program = parse_program(read_file(options.file), options.file);
  const std::vector<EngineOutcome> outcomes = check_program(program, values, options.seed);
  if (options.json) {
    fmt::print("{}\n", to_json(program.name(), outcomes));
    return kOk;
  }
  fmt::print("{}\n", to_text(program.name(), outcomes));
  return kOk;
}

}  // namespace tilewright::tool
