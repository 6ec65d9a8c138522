// What this machine offers to each engine, as data: what `tilewright doctor` shows, and Python's with it.
#pragma once
#include <string>

namespace tilewright {

// A JSON object: version, the compiler that kernels are made by and those that PATH has, the processor, NVRTC, the
// driver and its devices, the cache, the environment variables that are set. What is missing says what to do ("help").
// `trying`: compiles a kernel with each compiler, which says whether it works; else it says only what is there.
std::string machine_report(bool trying);

}  // namespace tilewright
