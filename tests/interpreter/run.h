// Runs a program of the C++ language on the interpreter.
#pragma once
#include <gtest/gtest.h>

#include "interpreter/interpreter.h"
#include "ir/program.h"
#include "support/diagnostic.h"
#include "tilewright/language.h"
#include "tilewright/tensor.h"

namespace tilewright::interpreter {

struct RunOptions {
  std::map<std::string, int64_t> ints = {};   // symbols and integer parameters by name
  std::map<std::string, double> floats = {};  // floating parameters by name
  int threads = 1;
  std::string* printed = nullptr;
};

inline void run(const Program& program, const std::vector<NDArray>& arrays, const RunOptions& options = {}) {
  const ir::TileProgram& ir = program.box().program;
  Binding binding;
  binding.threads = options.threads;
  size_t next = 0;
  for (const ir::Param& param : ir.params)
    if (param.is_tensor()) binding.buffers.push_back({param.buffer, arrays.at(next++).data()});
  auto value = [&](ir::VarId id) {
    const std::string& name = ir.var(id).name;
    if (options.floats.contains(name)) return std::bit_cast<uint64_t>(options.floats.at(name));
    return static_cast<uint64_t>(options.ints.at(name));
  };
  for (const ir::Param& param : ir.params)
    if (!param.is_tensor()) binding.values.emplace_back(param.var, value(param.var));
  for (ir::VarId symbol : ir.symbols) binding.values.emplace_back(symbol, value(symbol));
  if (options.printed) binding.print = [&](std::string_view line) { *options.printed += line; };
  interpret(ir, binding);
}

// The diagnostic that the run ends with; its line number is not part of the text.
inline std::string error_of(const Program& program, const std::vector<NDArray>& arrays,
                            const RunOptions& options = {}) {
  try {
    run(program, arrays, options);
  } catch (const LaunchError& error) {
    EXPECT_GT(error.diagnostic().location.line, 0);
    return error.diagnostic().code_text() + ": " + error.diagnostic().message;
  }
  return "no error";
}

inline NDArray range_array(std::initializer_list<int64_t> shape, DType type, double scale = 1, double offset = 0) {
  NDArray a = NDArray::zeros(shape, type);
  std::vector<double> values(static_cast<size_t>(a.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = offset + scale * static_cast<double>(i % 97);
  a.assign_floats(values);
  return a;
}

}  // namespace tilewright::interpreter
