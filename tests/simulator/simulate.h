// Runs the text form of a thread program on the simulator.
#pragma once
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/verify.h"
#include "simulator/simulator.h"
#include "tilewright/tensor.h"

namespace tilewright::simulator {

inline std::vector<LaunchReport> run(const std::string& text, const std::vector<NDArray>& arrays,
                                     SimulateOptions options = {}) {
  const ir::ThreadProgram program = ir::parse_thread_program(text, "test.tile");
  ir::check_valid(program, "the test");
  interpreter::Binding binding;
  size_t next = 0;
  for (const ir::Param& param : program.params)
    if (param.is_tensor()) binding.buffers.push_back({param.buffer, arrays.at(next++).data()});
  options.count_traffic = true;
  return simulate(program, binding, options);
}

// A launch of `threads` threads in `blocks` blocks with these tensors; the body's first line is line 6.
inline std::string launch(int threads, const std::string& body, int blocks = 1) {
  return "thread program p {\n  param A: float32[256] alignment=16\n  param B: float32[256] alignment=16\n"
         "  param N: int32[64]\n  launch p(bx: " +
         std::to_string(blocks) + ") threads(tx: " + std::to_string(threads) + ") {\n" + body + "  }\n}\n";
}

struct Arrays {
  NDArray a = NDArray::zeros({256}, f32), b = NDArray::zeros({256}, f32), n = NDArray::zeros({64}, i32);
  Arrays() {
    for (int64_t i = 0; i < 256; ++i) a.set_float({i}, static_cast<double>(i));
  }
  std::vector<NDArray> list() const { return {a, b, n}; }
};

inline std::vector<LaunchReport> run_launch(int threads, const std::string& body, const Arrays& arrays = {},
                                            int blocks = 1, uint64_t seed = 0) {
  SimulateOptions options;
  options.seed = seed;
  return run(launch(threads, body, blocks), arrays.list(), options);
}

// "TW9001: message" of the error that the program ends with, for every order of warps that is tried.
template <class MakeArrays>
std::string error_of_text(const std::string& text, MakeArrays arrays) {
  std::string first;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    SimulateOptions options;
    options.seed = seed;
    std::string found = "no error";
    try {
      run(text, arrays(), options);
    } catch (const LaunchError& error) {
      EXPECT_GT(error.diagnostic().location.line, 0) << error.what();
      found = error.diagnostic().code_text() + ": " + error.diagnostic().message;
    }
    if (seed == 0) first = found;
    EXPECT_EQ(first.substr(0, 6), found.substr(0, 6)) << "by another order of the warps: " << found;
  }
  return first;
}

inline std::string error_of(int threads, const std::string& body, int blocks = 1) {
  return error_of_text(launch(threads, body, blocks), [] { return Arrays().list(); });
}

inline constexpr const char* kNoError = "no error";

inline void expect_error(const std::string& error, const std::string& code, const std::string& part) {
  EXPECT_EQ(error.substr(0, code.size()), code) << error;
  EXPECT_NE(error.find(part), std::string::npos) << error;
}

}  // namespace tilewright::simulator
