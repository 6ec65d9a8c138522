// tilewright doctor
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "driver/tool/commands.h"
#include "runtime/cpu_kernel.h"
#include "runtime/cuda_device.h"
#include "runtime/host_compiler.h"
#include "runtime/kernel_cache.h"
#include "runtime/nvrtc.h"
#include "support/diagnostic.h"
#include "tilewright/dtype.h"

namespace tilewright::tool {
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
Json compiler() {
  Json out;
  try {
    const runtime::HostCompiler found = runtime::find_host_compiler();
    out["path"] = found.path, out["version"] = found.identity;
    std::vector<std::string> flags = runtime::kernel_flags();
    const std::vector<std::string> features = runtime::processor_features().compiler_flags();
    flags.insert(flags.end(), features.begin(), features.end());
    const std::string text = runtime::kernel_text_head() + "int tw_entry(const tw_call*) { return 0; }\n";
    runtime::compile_shared_object(found, {text, flags, std::chrono::seconds(60), "doctor"});
    out["works"] = true;
  } catch (const Error& e) {
    add_problem(out, e);
  }
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
Json nvrtc() {
  Json out;
  try {
    const runtime::Nvrtc& found = runtime::Nvrtc::get();
    out["path"] = found.path(), out["version"] = found.version(), out["architectures"] = found.architectures();
    const std::string arch = fmt::format("sm_{}", found.architectures().front());
    const auto binary = found.compile({"doctor", "extern \"C\" __global__ void doctor() {}\n", arch});
    out["works"] = true, out["milliseconds"] = binary.milliseconds;
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

Json report() {
  Json out;
  out["version"] = "0.1.0";
  out["compiler"] = compiler();
  const bool cpu = out["compiler"]["works"].get<bool>();
  out["engines"] = cpu ? Json{"cpu", "interpreter"} : Json{"interpreter"};
  out["processor"] = runtime::detect_processor().to_string();
  out["processor_used"] = runtime::processor_features().to_string();
  out["threads"] = runtime::kernel_threads();
  out["nvrtc"] = nvrtc();
  out["driver"] = driver();
  out["cache"] = cache();
  out["switches"] = Json::object();
  for (const char* name : kSwitches)
    if (const char* value = std::getenv(name); value && *value) out["switches"][name] = value;
  return out;
}

std::string text(const Json& j) { return j.get<std::string>(); }

double mebibytes(const Json& bytes) { return static_cast<double>(bytes.get<int64_t>()) / 1048576; }

void show_cuda(const Json& nvrtc, const Json& driver) {
  const auto row = [](const char* name, const Json& part, const std::string& good) {
    fmt::print("{:<11} {}\n", name, part["works"].get<bool>() ? good : text(part["problem"]));
    if (part.contains("help")) fmt::print("            {}\n", text(part["help"]));
  };
  const auto known = [](const Json& part, const char* name) { return part.contains(name) ? text(part[name]) : ""; };
  row("nvrtc", nvrtc, fmt::format("{} {}: works", known(nvrtc, "path"), known(nvrtc, "version")));
  row("cuda", driver, fmt::format("{} {}", known(driver, "path"), known(driver, "version")));
  for (size_t i = 0; i < driver["devices"].size(); ++i) {
    const Json& d = driver["devices"][i];
    fmt::print("cuda:{:<6} {}, {}, {} SMs, {:.0f} MiB, L2 {:.0f} MiB, {} bytes shared a block\n", i, text(d["name"]),
               text(d["architecture"]), d["sms"].get<int>(), mebibytes(d["memory_bytes"]), mebibytes(d["l2_bytes"]),
               d["shared_bytes_per_block"].get<int>());
  }
}

void show(const Json& r) {
  fmt::print("tilewright  {}\n", text(r["version"]));
  std::vector<std::string> engines;
  for (const Json& e : r["engines"]) engines.push_back(text(e));
  fmt::print("engines     {}\n", fmt::join(engines, ", "));
  const Json& compiler = r["compiler"];
  if (compiler["works"].get<bool>()) {
    fmt::print("compiler    {}\n            {}: works\n", text(compiler["path"]), text(compiler["version"]));
  } else {
    fmt::print("compiler    {}\n", text(compiler["problem"]));
    if (compiler.contains("help")) fmt::print("            {}\n", text(compiler["help"]));
  }
  fmt::print("processor   {}\n", text(r["processor"]));
  if (r["processor"] != r["processor_used"])
    fmt::print("            of these are used: {}\n", text(r["processor_used"]));
  fmt::print("threads     {}\n", r["threads"].get<int>());
  show_cuda(r["nvrtc"], r["driver"]);
  const Json& cache = r["cache"];
  if (text(cache["directory"]).empty()) {
    fmt::print("cache       none\n");
  } else if (!cache["exists"].get<bool>()) {
    fmt::print("cache       {} (not there yet)\n", text(cache["directory"]));
  } else {
    fmt::print("cache       {}: {} entries, {:.1f} MiB{}\n", text(cache["directory"]), cache["entries"].get<int64_t>(),
               static_cast<double>(cache["bytes"].get<int64_t>()) / 1048576,
               cache["usable"].get<bool>() ? "" : "; not used, because it is not a private directory of this user");
  }
  for (const auto& [name, value] : r["switches"].items()) fmt::print("switch      {}={}\n", name, text(value));
}

}  // namespace

int doctor(const DoctorOptions& options) {
  const Json r = report();
  if (options.json) {
    fmt::print("{}\n", r.dump(2));
  } else {
    show(r);
  }
  return r["compiler"]["works"].get<bool>() ? kOk : kWrong;
}

}  // namespace tilewright::tool
