#include "tilewright/cost.h"

#include <charconv>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "driver/arguments.h"
#include "driver/canonical.h"
#include "driver/cuda_engine.h"
#include "driver/versions.h"
#include "ir/program.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower_to_threads.h"
#include "passes/plan_search.h"
#include "plan/plan.h"
#include "plan/price.h"
#include "support/warning.h"
#include "target/machine.h"

namespace tilewright {

namespace {

using Json = nlohmann::ordered_json;
using target::Machine;

// ---- machines

std::string names_of_machines() {
  std::string out;
  for (const Machine& m : target::machines()) out += (out.empty() ? "" : ", ") + m.name;
  return out;
}

void set_number(Machine& machine, const std::string& word) {
  const size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  double value = 0;
  const char* end = word.data() + word.size();
  std::string known;
  for (const target::MachineField& field : target::machine_fields()) {
    known += (known.empty() ? "" : ", ") + std::string(field.name);
    if (field.name != name) continue;
    if (equals == std::string::npos || std::from_chars(word.data() + equals + 1, end, value).ptr != end || value <= 0)
      fail(Code::BadOption, {}, fmt::format("'{}' gives {} no positive number", word, name),
           fmt::format("{}={:g} is what {} has", name, machine.*field.value, machine.name));
    machine.*field.value = value;
    return;
  }
  fail(Code::BadOption, {}, fmt::format("a machine has no number '{}'", name), "it has " + known);
}

// The machine that a text names, with the numbers behind its name.
Machine machine_from(const std::string& text) {
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = text.find_first_not_of(' ', at);
    if (begin == std::string::npos) break;
    at = std::min(text.find(' ', begin), text.size());
    words.push_back(text.substr(begin, at - begin));
  }
  const std::string name = words.empty() ? "" : words[0];
  const Machine* found = target::machine_named(name);
  if (!found) found = target::machine_of(name);
  if (!found && name.starts_with("sm_")) gpu_target(name);  // says which architectures there are
  if (!found)
    fail(Code::BadOption, {}, fmt::format("there is no machine '{}'", name),
         fmt::format("it is one of {}, and numbers of it may stand behind: \"H100 memory_bytes=2e6\"",
                     names_of_machines()));
  Machine out = *found;
  if (const target::GpuTarget* asked = target::GpuTarget::named(name)) out.arch = asked->name;
  for (size_t i = 1; i < words.size(); ++i) set_number(out, words[i]);
  return out;
}

Json machine_json(const Machine& m) {
  Json out = {{"name", m.name}, {"arch", m.arch}, {"basis", m.basis}};
  for (const target::MachineField& field : target::machine_fields()) out[std::string(field.name)] = m.*field.value;
  return out;
}

// What plans for a machine are made for: its architecture with its multiprocessors.
target::GpuTarget target_of(const Machine& machine) {
  target::GpuTarget out = gpu_target(machine.arch);
  out.multiprocessors = static_cast<int64_t>(machine.multiprocessors);
  return out;
}

// ---- predictions

Json price_json(const plan::Price& p, const Machine& machine) {
  const double clocks = p.microseconds * machine.clock * p.multiprocessors;
  const auto busy = [&](double of_a_tile) { return std::min(1.0, of_a_tile * p.tiles / clocks); };
  const double last = p.tiles - (static_cast<double>(p.waves) - 1) * p.places / static_cast<double>(p.waves);
  return {{"us", p.microseconds},
          {"limit", p.limit},
          {"tiles", p.tiles},
          {"waves", p.waves},
          {"last_wave", std::min(1.0, last * static_cast<double>(p.waves) / p.places)},
          {"memory_us", p.memory},
          {"clocks_of_a_tile",
           {{"matrix", p.matrix},
            {"shared", p.shared},
            {"l2", p.l2},
            {"issue", p.issue},
            {"special", p.special},
            {"results", p.epilogue},
            {"barriers", p.barriers}}},
          {"utilization",
           {{"matrix", busy(p.matrix)},
            {"shared", busy(p.shared)},
            {"l2", busy(p.l2)},
            {"memory", std::min(1.0, p.memory / p.microseconds)},
            {"issue", busy(p.issue)},
            {"special", busy(p.special)},
            {"results", busy(p.epilogue)},
            {"barriers", busy(p.barriers)}}}};
}

// A version of the program, as its plans see it.
class PlannedVersion {
 public:
  PlannedVersion(ir::TileProgram program, const Machine& machine)
      : program_(std::move(program)),
        machine_(machine),
        tiles_{.tiles = program_, .target = target_of(machine_), .attempts = {}} {
    passes::ThreadLowering lowered = passes::lower_to_threads(program_, tiles_.target);
    for (const plan::Plan& plan : lowered.plans) lines_.push_back(plan::lines_of(plan, lowered.tiles));
    plans_ = std::move(lowered.plans);
    passes::run_gpu_passes(tiles_, passes::gpu_tile_passes(), [](auto&&...) {});
  }

  // Which of the assumptions hold of a call, or may.
  std::vector<bool> holding(const NamedValues& values) const {
    std::vector<bool> out;
    for (const ir::Assumption& a : program_.assumptions) out.push_back(value_of(a.condition, program_, values) != 0);
    return out;
  }
  // Of each launch; none where one is not known.
  std::optional<std::vector<plan::Price>> prices(const NamedValues& values) const {
    const ir::Substitution known = known_values(program_, values);
    std::vector<plan::Price> out;
    for (size_t i = 0; i < plans_.size(); ++i) {
      const auto price = passes::price_of(tiles_.tiles, i, plans_[i], tiles_.target, known, &machine_);
      if (!price) return {};
      out.push_back(*price);
    }
    return out;
  }
  Json launches(const std::vector<plan::Price>& prices) const {
    Json out = Json::array();
    for (size_t i = 0; i < prices.size(); ++i) {
      Json launch = {{"name", tiles_.tiles.launches[i].name}};
      launch.update(price_json(prices[i], machine_));
      launch["plan"] = lines_[i];
      out.push_back(std::move(launch));
    }
    return out;
  }

 private:
  ir::TileProgram program_;
  Machine machine_;
  std::vector<plan::Plan> plans_;
  std::vector<std::vector<std::string>> lines_;  // of each
  passes::GpuProgram tiles_;
};

double sum_of(const std::vector<plan::Price>& prices) {
  double sum = 0;
  for (const plan::Price& p : prices) sum += p.microseconds;
  return sum;
}

}  // namespace

struct CostModel::State {
  State(const ir::TileProgram& recorded, const Machine& of)
      : asked_for(recorded), program(canonical(recorded)), machine(of), fast(passes::assume_fast_calls(program), of) {}

  // The version that a call with these values takes.
  const PlannedVersion& version_for(const NamedValues& values) {
    const std::vector<bool> holds = fast.holding(values);
    if (std::ranges::find(holds, false) == holds.end()) return fast;
    const std::lock_guard lock(asked);
    if (const auto known = others.find(holds); known != others.end()) return known->second;
    const WarningSink loud = replace_warning_sink([](const Diagnostic&) {});
    const std::shared_ptr<void> restore(nullptr, [&](void*) { replace_warning_sink(loud); });
    const size_t own = program.assumptions.size();  // of the program; those of the fast version follow
    ir::TileProgram other =
        passes::assume_what_holds(program, [&](const ir::Assumption&, size_t i) { return bool{holds[own + i]}; });
    return *for_other_calls(std::move(other), [&](const ir::TileProgram& p) {
      return &others.try_emplace(holds, p, machine).first->second;
    });
  }

  const ir::TileProgram asked_for, program;
  const Machine machine;
  PlannedVersion fast;
  std::mutex asked;
  std::map<std::vector<bool>, PlannedVersion> others;  // by which of the fast one's assumptions hold
};

CostModel::CostModel(const Program& program, const std::string& machine)
    : state_(std::make_shared<State>(program.box().program, machine_from(machine))) {}

std::optional<double> CostModel::microseconds(const std::map<std::string, int64_t>& values) const {
  const auto prices = state_->version_for(values).prices(values);
  return prices ? std::optional(sum_of(*prices)) : std::nullopt;
}

std::string CostModel::prediction(const std::map<std::string, int64_t>& values) const {
  check_values(state_->asked_for, values);
  const PlannedVersion& version = state_->version_for(values);
  const auto prices = version.prices(values);
  Json out = {{"program", state_->program.name}, {"machine", machine_json(state_->machine)}};
  if (prices) {
    out["us"] = sum_of(*prices);
    out["launches"] = version.launches(*prices);
    return out.dump();
  }
  out["us"] = nullptr;
  Json unknown = Json::array();
  for (const ir::VarId symbol : state_->program.symbols)
    if (const std::string& name = state_->program.var(symbol).name; !values.contains(name)) unknown.push_back(name);
  out["unknown"] = std::move(unknown), out["launches"] = Json::array();
  return out.dump();
}

std::string machines_json() {
  Json out = Json::array();
  for (const Machine& m : target::machines()) out.push_back(machine_json(m));
  return out.dump();
}

}  // namespace tilewright
