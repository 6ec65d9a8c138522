#include "ir/options.h"

#include "support/diagnostic.h"

namespace tilewright::ir {

void set_option(Options& options, std::string_view name, bool value, const SourceLocation& place) {
  const auto* named = std::ranges::find(kOptions, name, &NamedOption::name);
  if (named == kOptions.end()) {
    std::vector<std::string_view> names;
    for (const NamedOption& o : kOptions) names.push_back(o.name);
    fail(Code::TextUnknownField, place, fmt::format("a program has no option '{}'", name),
         fmt::format("it has {}", fmt::join(names, ", ")));
  }
  options.*named->value = value;
}

}  // namespace tilewright::ir
