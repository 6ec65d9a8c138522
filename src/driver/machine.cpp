#include "driver/machine.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/cpu_kernel.h"
#include "runtime/cuda_device.h"
#include "runtime/host_compiler.h"
#include "runtime/kernel_cache.h"
#include "runtime/nvrtc.h"
#include "support/diagnostic.h"
#include "tilewright/dtype.h"
#include "tilewright/version.h"

namespace tilewright {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSwitches[] = {"TILEWRIGHT_ENGINE",     "TILEWRIGHT_DUMP",  "TILEWRIGHT_THREADS",
                                     "TILEWRIGHT_CXX",        "TILEWRIGHT_CPU",   "TILEWRIGHT_CACHE_DIR",
                                     "TILEWRIGHT_CACHE_SIZE", "TILEWRIGHT_NVRTC", "TILEWRIGHT_LIBCUDA"};

void add_problem(Json& out, const Error& e) {
  out["works"] = false;
  out["problem"] = e.diagnostic().message;
  if (!e.diagnostic().help.empty()) out["help"] = e.diagnostic().help;
}

// Compiles the smallest kernel there is, past the cache.
Json compiler(bool trying) {
  Json out;
  try {
    const runtime::HostCompiler found = runtime::find_host_compiler();
    out["path"] = found.path, out["version"] = found.identity, out["works"] = true;
    if (!trying) return out;
    std::vector<std::string> flags = runtime::kernel_flags();
    const std::vector<std::string> features = runtime::processor_features().compiler_flags();
    flags.insert(flags.end(), features.begin(), features.end());
    const std::string text = runtime::kernel_text_head() + "int tw_entry(const tw_call*) { return 0; }\n";
    runtime::compile_shared_object(found, {text, flags, std::chrono::seconds(60), "doctor"});
  } catch (const Error& e) {
    add_problem(out, e);
  }
  return out;
}

Json compilers() {
  Json out = Json::array();
  for (const runtime::HostCompiler& found : runtime::host_compilers_of_path())
    out.push_back({{"path", found.path}, {"version", found.identity}});
  return out;
}

Json cache() {
  const runtime::KernelCache cache = runtime::KernelCache::from_environment();
  Json out = {{"directory", cache.directory()}, {"exists", false}};
  int64_t entries = 0, bytes = 0;
  if (DIR* directory = opendir(cache.directory().c_str())) {
    out["exists"] = true;
    while (const dirent* entry = readdir(directory)) {
      struct stat info {};
      const std::string path = cache.directory() + "/" + entry->d_name;
      if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
      ++entries, bytes += info.st_size;
    }
    closedir(directory);
    struct stat info {};
    const bool is_private = lstat(cache.directory().c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                            info.st_uid == geteuid() && (info.st_mode & 022) == 0;
    out["usable"] = is_private && access(cache.directory().c_str(), W_OK) == 0;
  }
  out["entries"] = entries, out["bytes"] = bytes;
  return out;
}

// Compiles an empty kernel for the oldest architecture that NVRTC knows.
Json nvrtc(bool trying) {
  Json out;
  try {
    const runtime::Nvrtc& found = runtime::Nvrtc::get();
    out["path"] = found.path(), out["version"] = found.version(), out["architectures"] = found.architectures();
    out["works"] = true;
    if (!trying) return out;
    const std::string arch = fmt::format("sm_{}", found.architectures().front());
    const auto binary = found.compile({"doctor", "extern \"C\" __global__ void doctor() {}\n", arch});
    out["milliseconds"] = binary.milliseconds;
  } catch (const Error& e) {
    add_problem(out, e);
  }
  return out;
}

Json device(int index) {
  const runtime::cuda::DeviceProperties& p = runtime::cuda::CudaDevice::get(index).properties;
  return {{"name", p.name},
          {"architecture", p.arch()},
          {"sms", p.sm_count},
          {"memory_bytes", p.memory_bytes},
          {"l2_bytes", p.l2_bytes},
          {"shared_bytes_per_block", p.shared_bytes_per_block},
          {"clock_megahertz", p.clock_megahertz}};
}

Json driver() {
  Json out;
  out["devices"] = Json::array();
  try {
    const runtime::cuda::Driver& found = runtime::cuda::Driver::get();
    out["path"] = found.path, out["version"] = fmt::format("{}.{}", found.version / 1000, found.version % 1000 / 10);
    for (int i = 0; i < found.devices; ++i) out["devices"].push_back(device(i));
    out["works"] = true;
  } catch (const Error& e) {
    add_problem(out, e);
  }
  return out;
}

}  // namespace

std::string machine_report(bool trying) {
  Json out;
  out["version"] = TILEWRIGHT_VERSION;
  out["compiler"] = compiler(trying);
  out["compilers"] = compilers();
  const bool cpu = out["compiler"]["works"].get<bool>();
  out["nvrtc"] = nvrtc(trying);
  out["driver"] = driver();
  out["engines"] = cpu ? Json{"cpu", "interpreter", "simulator"} : Json{"interpreter", "simulator"};
  if (!out["driver"]["devices"].empty() && out["nvrtc"]["works"].get<bool>()) out["engines"].push_back("cuda");
  out["processor"] = runtime::detect_processor().to_string();
  out["processor_used"] = runtime::processor_features().to_string();
  out["threads"] = runtime::kernel_threads();
  out["cache"] = cache();
  out["switches"] = Json::object();
  for (const char* name : kSwitches)
    if (const char* value = std::getenv(name); value && *value) out["switches"][name] = value;
  return out.dump(2);
}

}  // namespace tilewright
