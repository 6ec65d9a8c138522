// Kernels that are compiled ahead of time: from a program to the files of a C library.
#pragma once
#include <map>
#include <string>

#include "tilewright/program.h"

namespace tilewright {

struct KernelFiles {
  std::string folder;                        // that names the architecture: "sm_90a", "cpu_avx2"
  std::map<std::string, std::string> files;  // name, bytes: a header, an object, JSON; the runtime's header and object
};

// arch: a GPU ("sm_90a"), "cpu" for this machine's processor, or "cpu:LEVEL" with a level of features_of_level().
// function: its name in C, in which {arch} is the architecture's; "": the program's. CompileError for what a kernel
// that stands alone cannot do.
KernelFiles build_kernel(const Program& program, const std::string& arch, const std::string& function = "");

// Writes them to FOLDER/kernel.folder, which is made where it is not there. The paths, in order.
std::vector<std::string> write_files(const KernelFiles& kernel, const std::string& folder);

}  // namespace tilewright
