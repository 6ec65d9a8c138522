// PyTorch in a process of its own, asked for one timing at a time, so that it takes turns with our kernels.
#pragma once
#include <cstdio>
#include <string>

namespace bench {

class TorchPeer {
 public:
  // python: an interpreter that can import torch.
  explicit TorchPeer(const std::string& python);
  TorchPeer(const TorchPeer&) = delete;
  ~TorchPeer();
  bool ready() const { return ready_; }
  const std::string& version() const { return version_; }
  // "matmul bfloat16 M N K" or "attention float32 B H S D": the seconds of one call. The first call warms up.
  double seconds(const std::string& command);

 private:
  std::string ask(const std::string& line);
  int pid_ = -1;
  std::FILE* to_ = nullptr;
  std::FILE* from_ = nullptr;
  bool ready_ = false;
  std::string version_;
};

}  // namespace bench
