// What a program will cost, before it runs.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "tilewright/program.h"

namespace tilewright {

// A program's plans on a GPU, with the model that plans are priced by (docs/cost_model.md). Making one takes about 10
// ms, a question to it about 20 us. CompileError for what the GPU's engine refuses.
class CostModel {
 public:
  // machine: "H200" and the like (machines_json() lists them), or an architecture, "sm_90a", for the machine that its
  // schedules are made for. Numbers of it may be given behind its name: "H100 memory_bytes=2e6 multiprocessors=114".
  CostModel(const Program& program, const std::string& machine);

  // Microseconds of one call; `values`: of the program's symbols and numbers. Of the version that such a call takes,
  // which differs where rows are no whole pieces of 16 bytes. None: a count of blocks or turns depends on what is not
  // given.
  std::optional<double> microseconds(const std::map<std::string, int64_t>& values) const;

  // The same with what it is made of, as JSON: {"program", "machine": its numbers, "us" (null: not known, and "unknown"
  // says which symbols have no value), "launches": [{"name", "us", "limit", "tiles", "waves", "last_wave", "memory_us",
  // "clocks_of_a_tile", "utilization": the share of the time for which each unit is busy, "plan"}]}.
  std::string prediction(const std::map<std::string, int64_t>& values) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// The machines that a CostModel knows, as a JSON list of their numbers.
std::string machines_json();

}  // namespace tilewright
