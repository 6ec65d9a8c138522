// Random tile programs that are valid, with arguments for them. What a program computes is exact on every engine:
// floats that are summed are small whole numbers, so that no order of summation rounds; only outputs marked with a
// tolerance are not.
#pragma once
#include "driver/fuzz/random.h"
#include "ir/program.h"
#include "tilewright/tensor.h"

namespace tilewright::fuzz {

struct Argument {
  NDArray array;        // a tensor, or
  int64_t integer = 0;  // a scalar parameter
  bool is_scalar = false;
  bool is_output = false;
  double tolerance = 0;  // outputs: 0 compares bits; else the largest absolute difference allowed
};

struct Sample {
  ir::TileProgram program;
  std::vector<Argument> arguments;  // as the program's parameters
};

// The same seed gives the same sample, byte for byte.
Sample generate(uint64_t seed);

// Arguments for a program of that seed: by name, dtype and the values of its symbols. A minimized program may have
// fewer.
std::vector<Argument> arguments_for(const ir::TileProgram& program, uint64_t seed);

}  // namespace tilewright::fuzz
