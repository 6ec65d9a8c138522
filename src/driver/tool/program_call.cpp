#include "driver/tool/program_call.h"

#include "driver/npy.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "support/diagnostic.h"

namespace tilewright::tool {

std::pair<std::string, std::string> name_and_value(const std::string& text, const char* option) {
  const size_t at = text.find('=');
  if (at == std::string::npos || at == 0) throw UsageError(fmt::format("{} takes name=value, not '{}'", option, text));
  return {text.substr(0, at), text.substr(at + 1)};
}

namespace {

ir::TileProgram verified(const std::string& file) {
  ir::TileProgram program = ir::parse(read_file(file), file);
  ir::check_valid(program);
  return program;
}

}  // namespace

ProgramCall::ProgramCall(const CallArguments& arguments) : program_(verified(arguments.file)) {
  take_values(arguments.set);
  take_inputs(arguments.inputs);
  refuse_unknown();
  check_values(program_, values_);
  arrays_ = random_arguments(program_, values_, arguments.seed);
  for (size_t i = 0; i < arrays_.size(); ++i)
    if (const auto at = inputs_.find(name(i)); at != inputs_.end()) arrays_[i] = at->second;
  written_ = written_parameters(program_);
}

std::vector<NDArray> ProgramCall::fresh() const {
  std::vector<NDArray> copies;
  for (const NDArray& a : arrays_) copies.push_back(a.clone());
  return copies;
}

std::vector<Argument> ProgramCall::list(const std::vector<NDArray>& arrays) const {
  std::vector<Argument> out;
  size_t tensor = 0;
  for (const ir::Param& p : program_.params) {
    if (p.is_tensor()) {
      out.emplace_back(arrays[tensor++]);
    } else if (program_.var(p.var).type.is_float()) {
      out.emplace_back(floats_.at(program_.var(p.var).name));
    } else {
      out.emplace_back(values_.at(program_.var(p.var).name));
    }
  }
  return out;
}

ir::BufferId ProgramCall::id(size_t tensor) const {
  for (const ir::Param& p : program_.params)
    if (p.is_tensor() && tensor-- == 0) return p.buffer;
  return {};
}

void ProgramCall::take_values(const std::vector<std::string>& set) {
  for (const std::string& text : set) {
    const auto [key, value] = name_and_value(text, "--set");
    const auto integer = number_from<int64_t>(value);
    const auto real = number_from<double>(value);
    if (!real) throw UsageError(fmt::format("--set: '{}' is not a number", value));
    floats_[key] = *real;
    if (integer) values_[key] = *integer;
  }
}

void ProgramCall::take_inputs(const std::vector<std::string>& files) {
  for (const std::string& text : files) {
    const auto [key, path] = name_and_value(text, "--input");
    bool found = false;
    for (const ir::Param& p : program_.params) {
      if (!p.is_tensor() || program_.buffer(p.buffer).name != key) continue;
      found = true;
      const NDArray array = from_npy(read_file(path), path);
      // Its shape may say what a symbol is.
      const ir::Buffer& b = program_.buffer(p.buffer);
      for (size_t d = 0; d < b.rank() && d < static_cast<size_t>(array.rank()); ++d)
        if (const auto* v = b.shape[d].as<ir::Var>())
          values_.emplace(program_.var(v->id).name, array.shape(static_cast<int>(d)));
      inputs_[key] = array;
    }
    if (!found) throw UsageError(fmt::format("--input: the program has no tensor '{}'", key));
  }
}

void ProgramCall::refuse_unknown() const {
  std::set<std::string> known;
  std::vector<std::string> missing;
  for (ir::VarId v : program_.symbols) {
    known.insert(program_.var(v).name);
    if (!values_.contains(program_.var(v).name)) missing.push_back(program_.var(v).name);
  }
  for (const ir::Param& p : program_.params) {
    if (p.is_tensor()) continue;
    const ir::VarInfo& v = program_.var(p.var);
    known.insert(v.name);
    if (v.type.is_float() ? !floats_.contains(v.name) : !values_.contains(v.name)) missing.push_back(v.name);
  }
  for (const auto& item : floats_)
    if (!known.contains(item.first))
      throw UsageError(fmt::format("--set: the program has no symbol or scalar '{}'", item.first));
  for (const std::string& name : missing)
    if (const auto at = floats_.find(name); at != floats_.end())
      throw UsageError(fmt::format("--set: {} is an integer of 64 bits at most, not {}", name, at->second));
  if (!missing.empty())
    throw UsageError(fmt::format("give a value to {}: --set {}=...", fmt::join(missing, ", "), missing[0]));
}

}  // namespace tilewright::tool
