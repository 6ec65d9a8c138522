// A call of a program on arguments that nobody gave.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "driver/arguments.h"
#include "tilewright/executable.h"

namespace tilewright {

// Random tensors, the same for one seed. `values`: of symbols and of parameters that are numbers, all of them.
class RandomCall {
 public:
  RandomCall(const ir::TileProgram& program, const std::map<std::string, double>& values, uint64_t seed);
  const std::vector<Argument>& arguments() const { return arguments_; }

 private:
  std::vector<NDArray> arrays_;
  std::vector<Argument> arguments_;
};

}  // namespace tilewright
