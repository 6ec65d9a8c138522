// What each pass of the road to GPUs left, as texts: for TILEWRIGHT_DUMP, and for the page about a program.
#pragma once
#include "driver/dump.h"
#include "passes/gpu_passes.h"

namespace tilewright {

// Of the tiles, and of the plan that was tried last.
class GpuStages {
 public:
  struct Stage {
    std::string name, text;
    std::vector<std::string> decisions;  // all that is known behind it and no statement says
  };
  explicit GpuStages(bool wanted) : wanted_(wanted) {}
  void operator()(const char* name, const passes::GpuProgram& program, double milliseconds);
  void write(Dump& dump) const;
  const std::vector<Stage>& list() const { return stages_; }

 private:
  bool wanted_;
  std::vector<Stage> stages_;
};

// What is known of a program on its way that its statements do not say: plans, placements, layouts.
std::vector<std::string> decisions_of(const passes::GpuProgram& program);

}  // namespace tilewright
