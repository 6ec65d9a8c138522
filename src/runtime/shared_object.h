// A shared object loaded from bytes in memory: what was verified is what is loaded, whatever happens to files
// meanwhile.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace tilewright::runtime {

class SharedObject {
 public:
  // CompileError if the dynamic linker refuses the bytes. `name` shows in debuggers and profilers.
  SharedObject(std::string_view bytes, const std::string& name);
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  SharedObject& operator=(const SharedObject&) = delete;

  void* symbol(const char* name) const;  // null if there is none

 private:
  void* handle_ = nullptr;
};

// The OpenMP library that the object with this address has, if it has one, stays in the process: its threads go on when
// the last kernel is unloaded, and would find their code gone.
void keep_openmp(const void* address);

}  // namespace tilewright::runtime
