// A program's options by their names.
#pragma once
#include <array>
#include <string>
#include <string_view>

#include "ir/program.h"

namespace tilewright::ir {

struct NamedOption {
  std::string_view name;
  bool Options::*value;
};
inline constexpr std::array kOptions{NamedOption{"contract", &Options::contract},
                                     NamedOption{"fast_math", &Options::fast_math},
                                     NamedOption{"strict", &Options::strict}, NamedOption{"tf32", &Options::tf32},
                                     NamedOption{"zero_unwritten", &Options::zero_unwritten}};

// Sets one; CompileError (TW2012) at `place` for a name that none has.
void set_option(Options& options, std::string_view name, bool value, const SourceLocation& place = {});

}  // namespace tilewright::ir
