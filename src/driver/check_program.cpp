#include "driver/check_program.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "driver/arguments.h"
#include "driver/check_engine.h"
#include "ir/program.h"
#include "ir/verify.h"
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
      if (at->second != std::floor(at->second) || std::abs(at->second) > 0x1p53)
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
  return out;
}

}  // namespace

std::vector<EngineOutcome> check_program(const Program& program, const std::map<std::string, double>& values,
                                         uint64_t seed) {
  const ir::TileProgram& p = program.box().program;
  ir::check_valid(p);
  const NamedValues integers = integers_of(p, values);
  const std::vector<NDArray> arrays = random_arguments(p, integers, seed);
  std::vector<Argument> arguments;
  size_t tensor = 0;
  for (const ir::Param& param : p.params) {
    if (param.is_tensor()) {
      arguments.emplace_back(arrays[tensor++]);
    } else if (const ir::VarInfo& v = p.var(param.var); v.type.is_float()) {
      arguments.emplace_back(values.at(v.name));
    } else {
      arguments.emplace_back(integers.at(v.name));
    }
  }
  const EngineCheck check(program);
  check(arguments);
  return check.outcomes();
}

std::string to_text(const std::string& program, const std::vector<EngineOutcome>& outcomes) {
  if (outcomes.empty()) return fmt::format("{}: not checked", program);
  std::vector<std::string> ran, refused;
  for (const EngineOutcome& o : outcomes) {
    if (o.refusal.empty())
      ran.push_back(fmt::format("{} {:.3g} ms", o.engine, o.milliseconds));
    else
      refused.push_back(fmt::format("\n  {} does not take it: {}", o.engine, o.refusal));
  }
  return fmt::format("{}: {}: {}{}", program, ran.size() > 1 ? "the engines agree" : "no engine to compare with",
                     fmt::join(ran, ", "), fmt::join(refused, ""));
}

std::string to_json(const std::string& program, const std::vector<EngineOutcome>& outcomes) {
  nlohmann::ordered_json out = {{"program", program}, {"engines", nlohmann::ordered_json::array()}};
  for (const EngineOutcome& o : outcomes) {
    nlohmann::ordered_json row = {{"engine", o.engine}};
    if (o.refusal.empty())
      row["milliseconds"] = o.milliseconds;
    else
      row["refusal"] = o.refusal;
    out["engines"].push_back(row);
  }
  return out.dump();
}

}  // namespace tilewright
