#include "driver/check_program.h"

#include <nlohmann/json.hpp>

#include "driver/check_engine.h"
#include "driver/random_call.h"
#include "ir/program.h"
#include "ir/verify.h"

namespace tilewright {

std::vector<EngineOutcome> check_program(const Program& program, const std::map<std::string, double>& values,
                                         uint64_t seed) {
  const ir::TileProgram& p = program.box().program;
  ir::check_valid(p);
  const RandomCall call(p, values, seed);
  const EngineCheck check(program);
  check(call.arguments());
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
