#include "runtime/loaded_library.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>

namespace tilewright::runtime {
namespace {

bool exists(const std::string& path) { return path.find('/') == std::string::npos || access(path.c_str(), F_OK) == 0; }

std::string loaded_from(void* handle, const std::string& asked) {
  link_map* map = nullptr;
  return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map && map->l_name && *map->l_name ? map->l_name : asked;
}

}  // namespace

LoadedLibrary LoadedLibrary::open(const std::vector<std::string>& candidates, std::string& problem) {
  LoadedLibrary library;
  bool one_exists = false;
  for (const std::string& candidate : candidates) {
    library.handle_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library.handle_) {
      library.path_ = loaded_from(library.handle_, candidate);
      return library;
    }
    const char* reason = dlerror();
    const bool is_file = candidate.find('/') != std::string::npos && exists(candidate);
    if (is_file || !one_exists) problem = reason ? reason : "";
    one_exists |= is_file;
  }
  return library;
}

void* LoadedLibrary::symbol(const char* name) const { return handle_ ? dlsym(handle_, name) : nullptr; }

std::vector<std::string> directories_above_this_library() {
  std::vector<std::string> directories;
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&directories_above_this_library), &info) == 0) return directories;
  // A program's name is what it was called by, which may be no path; the kernel knows its file.
  char path[PATH_MAX];
  if (!info.dli_fname || !std::strchr(info.dli_fname, '/') || !realpath(info.dli_fname, path))
    if (!realpath("/proc/self/exe", path)) return directories;
  std::string at = path;
  for (size_t slash = at.rfind('/'); slash != std::string::npos && slash > 0; slash = at.rfind('/')) {
    at.resize(slash);
    directories.push_back(at);
  }
  return directories;
}

}  // namespace tilewright::runtime
