// What each pass of the road to GPUs left, as texts: for TILEWRIGHT_DUMP.
#pragma once
#include "driver/dump.h"
#include "passes/gpu_passes.h"

namespace tilewright {

// Of the tiles, and of the plan that was tried last.
class GpuStages {
 public:
  explicit GpuStages(bool wanted) : wanted_(wanted) {}
  void operator()(const char* name, const passes::GpuProgram& program, double milliseconds);
  void write(Dump& dump) const;

 private:
  struct Stage {
    std::string name, text;
  };
  bool wanted_;
  std::vector<Stage> stages_;
};

}  // namespace tilewright
