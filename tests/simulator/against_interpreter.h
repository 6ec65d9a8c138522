// Programs in the simulator, held against the interpreter.
#pragma once
#include <gtest/gtest.h>

#include "driver/arguments.h"
#include "ir/program.h"
#include "tilewright/compile.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {

// The elements of all tensors after a call with random arguments, which are the same for every engine.
inline std::vector<std::vector<double>> results_of(const ir::TileProgram& tiles, const CompileOptions& options) {
  const Program handle(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const std::vector<NDArray> arrays = random_arguments(tiles, {}, 7);
  std::vector<Argument> list;
  for (const NDArray& a : arrays) list.emplace_back(a);
  compile(handle, options).call(list);
  std::vector<std::vector<double>> out;
  for (const NDArray& a : arrays) out.push_back(a.to_floats());
  return out;
}

// The simulator finds no race on either GPU, and computes what the interpreter does.
inline void expect_interpreted(const ir::TileProgram& tiles) {
  const auto want = results_of(tiles, {.engine = Engine::Interpreter});
  for (const char* arch : {"sm_80", "sm_90a"}) {
    try {
      EXPECT_EQ(results_of(tiles, {.engine = Engine::Simulator, .arch = arch}), want) << arch;
    } catch (const Error& error) {
      ADD_FAILURE() << arch << ": " << error.what();
    }
  }
}

}  // namespace tilewright::simulator
