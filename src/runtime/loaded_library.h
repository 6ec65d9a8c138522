// A shared library of somebody else, found at run time: what is missing is an error of ours, not of the linker.
#pragma once
#include <string>
#include <vector>

namespace tilewright::runtime {

// Stays loaded until the process ends: neither NVRTC nor the CUDA driver can be unloaded safely.
class LoadedLibrary {
 public:
  // The first of `candidates` (absolute paths, or names that the dynamic linker looks for) that loads. Empty if none
  // does; `problem` then says why for the last one that exists, or for the last.
  static LoadedLibrary open(const std::vector<std::string>& candidates, std::string& problem);

  LoadedLibrary() = default;
  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& path() const { return path_; }  // of the file that was loaded

  // Null if there is none.
  void* symbol(const char* name) const;
  template <class Function>
  bool load(const char* name, Function*& slot) const {
    slot = reinterpret_cast<Function*>(symbol(name));
    return slot != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string path_;
};

// The directory of the file that holds this code, and every directory above it, innermost first.
std::vector<std::string> directories_above_this_library();

}  // namespace tilewright::runtime
