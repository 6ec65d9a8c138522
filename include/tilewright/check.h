// Calls that are checked: every engine runs the program, and their results are compared.
#pragma once
#include "tilewright/compile.h"

namespace tilewright {

// As compile(), but before each call the program runs on copies of the arguments on the interpreter, which checks
// accesses, then on every other engine that takes it: the CPU's code, the simulator as sm_80 and as sm_90a, a CUDA
// device where there is one. LaunchError TW4020 names the engines, the tensor and the element where one of them differs
// from the interpreter: in a bit, or, where sums may be taken in another order (gemm, reductions, scans and atomics of
// floats), by more than 64 units in the last place of the tensor's largest value. It is slow: for small tensors.
Executable compile_checked(const Program& program, const CompileOptions& options = {});

}  // namespace tilewright
