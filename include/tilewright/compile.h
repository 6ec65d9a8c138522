// From a program to something that can be called.
#pragma once
#include <string>

#include "tilewright/executable.h"
#include "tilewright/program.h"

namespace tilewright {

enum class Engine : uint8_t {
  Auto,         // cpu; where it does not take the program, or there is no host compiler, the interpreter, with a
                // warning. TILEWRIGHT_ENGINE overrides.
  Cpu,          // compiled C++, blocks over the cores
  Interpreter,  // the reference meaning, with every check; slow
  Simulator,    // a GPU's code, thread by thread, on a simulated one: finds races and missing guards; slow
  Cuda,         // compiled CUDA, on tensors in device memory
};

struct CompileOptions {
  Engine engine = Engine::Auto;
  std::string arch = {};  // Cuda, Simulator: "sm_80", "sm_90a", "sm_120a", ...; empty: that of device 0, or sm_80
  std::string plan = {};  // Cuda, Simulator: lines that plans of launches are to have, as `--stage plan` prints them
};

// CompileError if the program is not valid or the engine cannot run it. Kernels are cached on disk and in memory.
Executable compile(const Program& program, const CompileOptions& options = {});

}  // namespace tilewright
