#include "driver/random_call.h"

#include <cmath>

#include "ir/program.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

// Those that a call solves or takes: symbols, then numbers among the parameters.
std::vector<ir::VarId> wanted(const ir::TileProgram& p) {
  std::vector<ir::VarId> out(p.symbols.begin(), p.symbols.end());
  for (const ir::Param& param : p.params)
    if (!param.is_tensor()) out.push_back(param.var);
  return out;
}

NamedValues integers_of(const ir::TileProgram& p, const std::map<std::string, double>& values) {
  std::set<std::string> known;
  std::vector<std::string> missing;
  NamedValues out;
  for (const ir::VarId id : wanted(p)) {
    const ir::VarInfo& v = p.var(id);
    known.insert(v.name);
    const auto at = values.find(v.name);
    if (at == values.end()) {
      missing.push_back(v.name);
    } else if (!v.type.is_float()) {
      if (at->second != std::floor(at->second) ||
          std::abs(at->second) >= 0x1p53)  // beyond which doubles are no integers of their own
        fail(Code::ScalarRange, {},
             fmt::format("{}: '{}' is {}, but is given {}", p.name, v.name, v.type.name(), at->second));
      out[v.name] = static_cast<int64_t>(at->second);
    }
  }
  for (const auto& [name, value] : values)
    if (!known.contains(name))
      fail(Code::BadOption, {}, fmt::format("'{}' has no symbol or number '{}'", p.name, name),
           known.empty() ? "it takes tensors of known shapes alone" : fmt::format("it has {}", fmt::join(known, ", ")));
  if (!missing.empty())
    fail(Code::ArgumentCount, {},
         fmt::format("{}: nothing says what {} {}", p.name, fmt::join(missing, ", "),
                     missing.size() == 1 ? "is" : "are"),
         fmt::format("give a value: {}=64", missing[0]));
  check_values(p, out);
  return out;
}

}  // namespace

RandomCall::RandomCall(const ir::TileProgram& p, const std::map<std::string, double>& values, uint64_t seed) {
  const NamedValues integers = integers_of(p, values);
  arrays_ = random_arguments(p, integers, seed);
  size_t tensor = 0;
  for (const ir::Param& param : p.params) {
    if (param.is_tensor()) {
      arguments_.emplace_back(arrays_[tensor++]);
    } else if (const ir::VarInfo& v = p.var(param.var); v.type.is_float()) {
      arguments_.emplace_back(values.at(v.name));
    } else {
      arguments_.emplace_back(integers.at(v.name));
    }
  }
}

}  // namespace tilewright
