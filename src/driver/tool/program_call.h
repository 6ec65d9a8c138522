// A program of a file with what the command line calls it with.
#pragma once
#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "driver/arguments.h"
#include "driver/tool/commands.h"
#include "tilewright/executable.h"

namespace tilewright::tool {

// "M=17" of an option; UsageError if it is something else.
std::pair<std::string, std::string> name_and_value(const std::string& text, const char* option);

// The number that is all of the text.
template <class T>
std::optional<T> number_from(const std::string& text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

class ProgramCall {
 public:
  // Reads and verifies the program. Tensors without a file are random.
  explicit ProgramCall(const CallArguments& arguments);

  const ir::TileProgram& program() const { return program_; }
  std::vector<NDArray> fresh() const;  // copies of the tensors
  std::vector<Argument> list(const std::vector<NDArray>& arrays) const;
  const std::string& name(size_t tensor) const { return program_.buffer(id(tensor)).name; }
  bool is_written(size_t tensor) const { return written_.contains(id(tensor)); }

 private:
  ir::BufferId id(size_t tensor) const;
  void take_values(const std::vector<std::string>& set);
  void take_inputs(const std::vector<std::string>& files);
  void refuse_unknown() const;

  ir::TileProgram program_;
  NamedValues values_;
  std::map<std::string, double> floats_;
  std::map<std::string, NDArray> inputs_;
  std::vector<NDArray> arrays_;
  std::set<ir::BufferId> written_;
};

}  // namespace tilewright::tool
