// The programs that are spoiled to prove the checkers, each with how its mistakes are found.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "tilewright/tensor.h"

namespace tilewright::simulator {

struct MutantSubject {
  std::string name;
  ir::ThreadProgram threads;
  bool every_place = false;  // of each way; else a few, spread over the program
  // How a run of it ends: "refused: TW3006" before it runs, the code of the simulator's error, "wrong result" where
  // that is beyond what the program's own check allows, or nothing.
  std::function<std::string(const ir::ThreadProgram&)> finding;
  // All arrays after a run on inputs of this number, of which kInputs differ. Throws where the run does.
  std::function<std::vector<NDArray>(const ir::ThreadProgram&, int input)> run;
};
inline constexpr int kInputs = 3;

// Every example at its largest odd case, for sm_80 and, where its threads do something else there, for sm_90a.
std::vector<MutantSubject> example_subjects();
// Rings and roles for Hopper: by hand, and what the compiler makes of products, attention and a user's own barriers.
std::vector<MutantSubject> hopper_subjects();

}  // namespace tilewright::simulator
