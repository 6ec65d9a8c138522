// NVRTC in a process of its own: it has ended by SIGSEGV on texts that are valid C++, and must not take the user's with
// it. What is run is a program of this library's, from memory: there is no file that an installation could lack.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace tilewright::runtime {

struct NvrtcRequest {
  std::string builtins, path;  // files of NVRTC's two halves
  bool ptx = false;            // or a cubin
  std::string text;
  std::vector<std::string> options;
};

struct NvrtcAnswer {
  enum class End { Answered, Crashed, TimedOut, NotStarted };
  End end = End::NotStarted;
  int result = 0;  // NVRTC's, and what it gives
  std::string log, code;
  std::string problem;  // why it was not started, or by what it ended: "SIGSEGV"
};

// Started without a fork of this process, so that it may hold a device, locks and threads; waited for, whatever comes.
NvrtcAnswer call_nvrtc_apart(const NvrtcRequest& request,
                             std::chrono::milliseconds deadline = std::chrono::minutes(10));
// The same in this process: what ends it ends all.
NvrtcAnswer call_nvrtc_here(const NvrtcRequest& request);

}  // namespace tilewright::runtime
