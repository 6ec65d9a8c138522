// What a program will cost, before it runs.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tilewright/program.h"

namespace tilewright {

// A program's plans on a GPU, "sm_90a", with the model that plans are priced by (docs/plans.md). Making one takes about
// 10 ms, a question to it about 20 us. CompileError for what the GPU's engine refuses.
class CostModel {
 public:
  CostModel(const Program& program, const std::string& arch);

  // Microseconds of one call; `values`: of the program's symbols and numbers. Of the version that such a call takes,
  // which differs where rows are no whole pieces of 16 bytes. None: a count of blocks or turns depends on what is not
  // given.
  std::optional<double> microseconds(const std::map<std::string, int64_t>& values) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tilewright
