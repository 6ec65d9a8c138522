// A program on arguments that nobody gave: every engine that takes it, compared.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "tilewright/program.h"

namespace tilewright {

// What an engine did with a program: ran it, or why it does not take it.
struct EngineOutcome {
  std::string engine;
  std::string refusal;  // "": it ran
  double milliseconds = 0;
};

// Runs it on random tensors, the same for one seed. `values`: of symbols and of parameters that are numbers, all of
// them. What an engine finds wrong, and engines that differ, are a LaunchError. The interpreter is first.
std::vector<EngineOutcome> check_program(const Program& program, const std::map<std::string, double>& values,
                                         uint64_t seed);

// "NAME: the engines agree: interpreter 1.2 ms, cpu 0.1 ms", and a line for each engine that does not take it.
std::string to_text(const std::string& program, const std::vector<EngineOutcome>& outcomes);
// {"program": NAME, "engines": [{"engine", "refusal" or "milliseconds"}, ...]}
std::string to_json(const std::string& program, const std::vector<EngineOutcome>& outcomes);

}  // namespace tilewright
