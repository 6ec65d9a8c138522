// CPU kernels of many programs in one translation unit: starting the host compiler costs more than most kernels.
#pragma once
#include <span>

#include "driver/cpu_engine.h"
#include "runtime/launch_plan.h"
#include "tilewright/executable.h"

namespace tilewright::fuzz {

// How the host compiler translates the kernels: as always, or at twice the speed with less of its own transformations.
enum class Optimize : uint8_t { AsAlways, Little };

class Kernels {
 public:
  // Lowers all programs and compiles what can be lowered. What goes wrong is kept for build().
  explicit Kernels(std::span<const ir::TileProgram* const> programs, Optimize optimize);
  // The executable of a program; throws what went wrong with it. Once a program.
  Executable build(size_t program);

 private:
  struct One {
    runtime::LaunchPlan plan;
    CpuKernel kernel;
    std::exception_ptr error;
  };
  void lower(const ir::TileProgram& program, One& one);
  void compile_all(Optimize optimize);

  std::vector<One> all_;
};

}  // namespace tilewright::fuzz
