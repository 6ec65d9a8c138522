// NVIDIA's run time compiler as a function from text to a cubin, without a shell, a header or a file; in a process of
// its own wherever there can be one (nvrtc_process.h).
#pragma once
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/loaded_library.h"
#include "runtime/nvrtc_log.h"
#include "runtime/nvrtc_process.h"
#include "tilewright/diagnostic.h"

namespace tilewright::runtime {

struct DeviceCompileRequest {
  std::string_view name;                       // of the program: for dumps and messages only
  std::string_view text;                       // self-contained: an #include is refused
  std::string arch;                            // "sm_80", "sm_90a"
  std::vector<std::string> more_options = {};  // after device_options(); ours only
  SourceLocation location = {};                // of the program, for messages
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

// All of it may be used by several threads at a time; NVRTC compiles side by side. It is loaded here no sooner than
// something other than its path and version is asked for, which takes some milliseconds of each process.
class Nvrtc {
 public:
  // CompileError naming what to install if there is none.
  static const Nvrtc& get();
  static bool is_there();

  const std::string& path() const { return path_; }
  std::string version() const;                    // "13.0"
  const std::vector<int>& architectures() const;  // 80, 90, ...

  // CompileError with the compiler's messages and the lines of the text that they speak of. Where NVRTC crashes, the
  // text is compiled with fewer optimizations, with a warning; CompileError if it crashes then, too.
  DeviceBinary compile(const DeviceCompileRequest& request) const;

 private:
  struct Loaded;
  Nvrtc(std::string path, std::string builtins, int major, int minor);
  explicit Nvrtc(LoadedLibrary library);
  static const Nvrtc* find();
  static const Nvrtc* found(const std::vector<std::string>& candidates);
  const Loaded& loaded() const;
  NvrtcAnswer ask(const DeviceCompileRequest& request, const std::vector<std::string>& options, bool ptx) const;
  [[noreturn]] void fail_to_compile(const DeviceCompileRequest& request, const NvrtcAnswer& answer) const;
  std::string ptx_of(const DeviceCompileRequest& request) const;

  std::string path_;
  std::string builtins_;  // the file of NVRTC's second half; empty if it is not beside the first
  int major_ = 0, minor_ = 0;
  mutable std::once_flag once_;
  mutable std::shared_ptr<const Loaded> loaded_;
};

}  // namespace tilewright::runtime
