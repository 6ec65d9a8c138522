// One child process with a deadline, started without a shell.
#pragma once
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

struct ProcessResult {
  bool started = false;
  bool timed_out = false;  // it and its children were killed
  int status = -1;         // exit status; 128 + signal if killed; -1 if unknown
  std::string output;      // stdout and stderr together, the first 64 KiB
};

// Runs `argv` (argv[0] absolute) in `directory` with exactly the environment `environment`, stdin empty. It has the
// descriptors `handed` as 3, 4 and so on.
ProcessResult run_process(const std::vector<std::string>& argv, const std::vector<std::string>& environment,
                          const std::string& directory, std::chrono::milliseconds deadline,
                          const std::vector<int>& handed = {});

// A file descriptor that closes itself.
class File {
 public:
  explicit File(int fd = -1) : fd_(fd) {}
  File(File&& other) noexcept : fd_(other.release()) {}
  File& operator=(File&& other) noexcept;
  ~File();
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release();
  bool write_all(std::string_view bytes) const;

 private:
  int fd_;
};

}  // namespace tilewright::runtime
