#include "runtime/shared_object.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>

#include "runtime/process.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

// The dynamic linker returns the object it has already loaded under a path, and descriptors are used again: so each
// load spells the path in its own way, a counter in binary digits "./" and "//".
std::string unique_path(int fd) {
  static std::atomic<uint32_t> counter = 0;
  std::string path = "/proc/self/fd/";
  for (uint32_t bits = counter++, i = 0; i < 32; ++i, bits >>= 1) path += bits & 1 ? "./" : "//";
  return path + std::to_string(fd);
}

void keep_openmp_of(void* object) {
  const void* function = dlsym(object, "omp_get_max_threads");
  Dl_info library{};
  if (function && dladdr(function, &library) && library.dli_fname)
    dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);  // never closed
}

}  // namespace

SharedObject::SharedObject(std::string_view bytes, const std::string& name) {
  const File file(memfd_create(("tilewright:" + name).substr(0, 100).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || !file.write_all(bytes))
    fail(Code::KernelNotLoadable, {}, fmt::format("no memory file for kernel '{}': {}", name, std::strerror(errno)));
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW);
  handle_ = dlopen(unique_path(file.get()).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_) {
    keep_openmp_of(handle_);
    return;
  }
  const std::string reason = dlerror();  // begins with our path, which tells nobody anything
  const size_t colon = reason.find(": ");
  fail(Code::KernelNotLoadable, {},
       fmt::format("kernel '{}' cannot be loaded: {}", name,
                   colon == std::string::npos ? reason : reason.substr(colon + 2)));
}

SharedObject::~SharedObject() {
  if (handle_) dlclose(handle_);
}

void keep_openmp(const void* address) {
  Dl_info at{};
  void* object = dladdr(address, &at) && at.dli_fname ? dlopen(at.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (!object) return;
  keep_openmp_of(object);
  dlclose(object);
}

void* SharedObject::symbol(const char* name) const { return dlsym(handle_, name); }

}  // namespace tilewright::runtime
