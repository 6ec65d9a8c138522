// NVIDIA's run time compiler as a function from text to a cubin: in this process, without a shell, a header or a file.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/loaded_library.h"
#include "runtime/nvrtc_log.h"

namespace tilewright::runtime {

struct DeviceCompileRequest {
  std::string_view name;                       // of the program: for dumps and messages only
  std::string_view text;                       // self-contained: an #include is refused
  std::string arch;                            // "sm_80", "sm_90a"
  std::vector<std::string> more_options = {};  // after device_options(); ours only
};

struct DeviceBinary {
  std::string cubin;
  DeviceLog log;
  double milliseconds = 0;  // in the compiler
  bool doubtful = false;    // ptxas may have got integers wrong (machine_code.h): the text should say it another way
};

// The options every kernel is compiled with; nvrtc.cpp says why each of them.
const std::vector<std::string>& device_options();

// Every file that is tried, in order: TILEWRIGHT_NVRTC alone if it is set; else what this process has loaded, the
// packages nvidia-cuda-nvrtc beside or above this library, of $VIRTUAL_ENV and of a .venv above it, the dynamic
// linker's places, $CUDA_HOME and $CUDA_PATH, /usr/local/cuda. Newest version first in each.
std::vector<std::string> nvrtc_candidates();

// All of it may be used by several threads at a time; NVRTC compiles side by side.
class Nvrtc {
 public:
  // CompileError naming what to install if there is none.
  static const Nvrtc& get();

  const std::string& path() const { return library_.path(); }
  std::string version() const;                                              // "13.0"
  const std::vector<int>& architectures() const { return architectures_; }  // 80, 90, ...

  // CompileError with the compiler's messages and the lines of the text that they speak of.
  DeviceBinary compile(const DeviceCompileRequest& request) const;

 private:
  struct Program;
  struct Functions;
  explicit Nvrtc(LoadedLibrary library);
  void preload_builtins() const;
  std::string ptx_of(const DeviceCompileRequest& request) const;

  LoadedLibrary library_;
  std::shared_ptr<const Functions> call_;
  int major_ = 0, minor_ = 0;
  std::vector<int> architectures_;
};

}  // namespace tilewright::runtime
