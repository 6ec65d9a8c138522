#include "runtime/nvrtc.h"

#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <regex>

#include "runtime/failed_text.h"
#include "runtime/machine_code.h"
#include "runtime/nvrtc_call.h"
#include "support/diagnostic.h"
#include "support/warning.h"

namespace tilewright::runtime {
namespace {

constexpr const char* kInstall =
    "install the package nvidia-cuda-nvrtc (pip) or a CUDA toolkit, or set TILEWRIGHT_NVRTC to the path of libnvrtc.so";
constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

// nvrtcResult of nvrtc.h, as far as it is told apart.
constexpr int kSuccess = 0, kInvalidOption = 5, kBuiltinMissing = 7;

// What NVRTC is given where it has crashed, 12.9 and later. Results stay the same bits.
constexpr const char* kFewOptimizations = "--Ofast-compile=min";

std::string environment_variable(const char* name) {
  const char* value = secure_getenv(name);
  return value ? value : "";
}

void add_names(std::vector<std::string>& out, const std::string& directory) {
  for (const char* name : kNames) out.push_back(fmt::format("{}/{}", directory, name));
}

// The package nvidia-cuda-nvrtc keeps its library in nvidia/cu13 from version 13 on, in nvidia/cuda_nvrtc before.
void add_packages(std::vector<std::string>& out, const std::string& site_packages) {
  add_names(out, site_packages + "/nvidia/cu13/lib");
  add_names(out, site_packages + "/nvidia/cuda_nvrtc/lib");
}

void add_virtual_environment(std::vector<std::string>& out, const std::string& root) {
  std::vector<std::string> versions;
  if (DIR* directory = opendir((root + "/lib").c_str())) {
    while (const dirent* entry = readdir(directory))
      if (std::string_view(entry->d_name).starts_with("python3.")) versions.push_back(entry->d_name);
    closedir(directory);
  }
  std::sort(versions.rbegin(), versions.rend());
  for (const std::string& version : versions) add_packages(out, fmt::format("{}/lib/{}/site-packages", root, version));
}

// The line number in "kernel.cu(12): error: ..." or "ptx input, line 12; error"; 0 if there is none.
int line_after(std::string_view log, std::string_view before) {
  const size_t at = log.find(before);
  int line = 0;
  if (at != std::string_view::npos) std::from_chars(log.data() + at + before.size(), log.data() + log.size(), line);
  return line;
}

// What the text includes would be missing from the key of the kernel cache.
void refuse_includes(const DeviceCompileRequest& request) {
  int line = 1;
  for (size_t at = 0; at < request.text.size(); ++line) {
    const size_t end = std::min(request.text.find('\n', at), request.text.size());
    std::string_view text = request.text.substr(at, end - at);
    const auto skip = [&](std::string_view what) {
      text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
      if (!text.starts_with(what)) return false;
      text.remove_prefix(what.size());
      return true;
    };
    if ((skip("#") || skip("%:")) && skip("include"))
      fail(Code::DeviceTextIncludes, {},
           fmt::format("the text of kernel '{}' includes a file, but must be self-contained:\n{}", request.name,
                       excerpt(request.text, line)),
           "copy what is needed into the text");
    at = end + 1;
  }
}

}  // namespace

// What of it is in this process. Its functions that compile are in nvrtc_call.h.
struct Nvrtc::Loaded {
  LoadedLibrary library;
  int major = 0, minor = 0;
  std::vector<int> architectures;
  const char* (*error_text)(int) = nullptr;

  explicit Loaded(LoadedLibrary opened) : library(std::move(opened)) {
    const char* missing = nullptr;
    const auto get = [&](const char* name, auto& slot) {
      if (!library.load(name, slot) && !missing) missing = name;
    };
    int (*version)(int*, int*) = nullptr;
    int (*architecture_count)(int*) = nullptr;
    int (*give_architectures)(int*) = nullptr;
    get("nvrtcVersion", version), get("nvrtcGetNumSupportedArchs", architecture_count);
    get("nvrtcGetSupportedArchs", give_architectures), get("nvrtcGetErrorString", error_text);
    if (missing)
      fail(Code::DeviceCompilerUnusable, {},
           fmt::format("{} has no {}: not NVRTC, or one before 11.2", library.path(), missing), kInstall);
    int count = 0;
    if (version(&major, &minor) != kSuccess || architecture_count(&count) != kSuccess || count <= 0)
      fail(Code::DeviceCompilerUnusable, {}, fmt::format("{} does not tell its version", library.path()), kInstall);
    architectures.resize(static_cast<size_t>(count));
    give_architectures(architectures.data());
  }
};

const std::vector<std::string>& device_options() {
  static const std::vector<std::string> options = {
      "--std=c++20",
      // Results must be the interpreter's, bit for bit: a*b+c stays two roundings unless the text says fma. The rest of
      // IEEE arithmetic (denormals, divisions, roots) is the default and is spelled out against a change of it.
      "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true",
      // Functions without a word before them are the device's: there is no host here.
      "-default-device",
      // Warnings of the C++ front end speak of text that we wrote; remarks of ptxas pass.
      "-w",
      // Registers, spills and remarks, which parse_device_log() reads.
      "--ptxas-options=-v"};
  return options;
}

std::vector<std::string> nvrtc_candidates() {
  if (std::string wish = environment_variable("TILEWRIGHT_NVRTC"); !wish.empty()) return {wish};
  std::vector<std::string> out;
  for (const char* name : kNames)
    if (void* loaded = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) {
      out.push_back(name);
      dlclose(loaded);  // the count alone: it was loaded before
    }
  for (const std::string& directory : directories_above_this_library()) {
    add_packages(out, directory);
    add_virtual_environment(out, directory + "/.venv");
  }
  if (const std::string root = environment_variable("VIRTUAL_ENV"); !root.empty()) add_virtual_environment(out, root);
  for (const char* name : kNames) out.push_back(name);
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const std::string root = environment_variable(variable); !root.empty()) add_names(out, root + "/lib64");
  add_names(out, "/usr/local/cuda/lib64");
  return out;
}

namespace {

struct SecondHalf {
  std::string file;
  int major = 0, minor = 0;
};

// The file of NVRTC's second half in the directory of the first, whose name has the version of both; nothing if there
// is none, or more than one.
std::optional<SecondHalf> second_half(const std::string& path) {
  static const std::regex name(R"(libnvrtc-builtins\.so\.(\d{1,4})\.(\d{1,4}))");
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || access(path.c_str(), R_OK) != 0) return std::nullopt;
  DIR* directory = opendir(path.substr(0, slash + 1).c_str());
  if (!directory) return std::nullopt;
  std::vector<SecondHalf> found;
  std::cmatch match;
  while (const dirent* entry = readdir(directory))
    if (std::regex_match(entry->d_name, match, name))
      found.push_back({path.substr(0, slash + 1) + entry->d_name, std::stoi(match[1]), std::stoi(match[2])});
  closedir(directory);
  if (found.size() != 1) return std::nullopt;
  return std::move(found.front());
}

}  // namespace

const Nvrtc* Nvrtc::found(const std::vector<std::string>& candidates) {
  std::string problem;
  for (const std::string& candidate : candidates) {
    if (std::optional<SecondHalf> half = second_half(candidate))
      return new Nvrtc(candidate, std::move(half->file), half->major, half->minor);
    if (LoadedLibrary library = LoadedLibrary::open({candidate}, problem)) return new Nvrtc(std::move(library));
  }
  return nullptr;
}

const Nvrtc* Nvrtc::find() {
  static std::mutex mutex;
  static auto* const all = new std::map<std::string, const Nvrtc*>;  // by TILEWRIGHT_NVRTC; never unloaded
  std::lock_guard lock(mutex);
  const Nvrtc*& nvrtc = (*all)[environment_variable("TILEWRIGHT_NVRTC")];
  if (!nvrtc) nvrtc = found(nvrtc_candidates());
  return nvrtc;
}

bool Nvrtc::is_there() { return find() != nullptr; }

const Nvrtc& Nvrtc::get() {
  if (const Nvrtc* nvrtc = find()) return *nvrtc;
  std::string problem;
  LoadedLibrary::open(nvrtc_candidates(), problem);
  fail(Code::DeviceCompilerMissing, {}, fmt::format("no NVRTC, the CUDA compiler: {}", problem), kInstall);
}

Nvrtc::Nvrtc(std::string path, std::string builtins, int major, int minor)
    : path_(std::move(path)), builtins_(std::move(builtins)), major_(major), minor_(minor) {}

Nvrtc::Nvrtc(LoadedLibrary library) : path_(library.path()) {
  std::call_once(once_, [&] { loaded_ = std::make_shared<Loaded>(std::move(library)); });
  major_ = loaded_->major, minor_ = loaded_->minor;
  if (std::optional<SecondHalf> half = second_half(path_)) builtins_ = std::move(half->file);
}

const Nvrtc::Loaded& Nvrtc::loaded() const {
  std::call_once(once_, [&] {
    std::string problem;
    LoadedLibrary library = LoadedLibrary::open({path_}, problem);
    if (!library) fail(Code::DeviceCompilerUnusable, {}, fmt::format("NVRTC cannot be loaded: {}", problem), kInstall);
    loaded_ = std::make_shared<Loaded>(std::move(library));
  });
  return *loaded_;
}

std::string Nvrtc::version() const { return fmt::format("{}.{}", major_, minor_); }

const std::vector<int>& Nvrtc::architectures() const { return loaded().architectures; }

namespace {

// Whether a signed integer is negated in PTX.
bool negates(const std::string& ptx) {
  static const std::regex negation(R"(neg\.s(16|32)|sub\.s(16|32)\s+%\w+,\s*0,)");
  return std::regex_search(ptx, negation);
}

std::string without_end(std::string log) {
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  return log;
}

// In a process of its own, as long as this system lets us have one.
NvrtcAnswer call_nvrtc(const NvrtcRequest& request) {
  static std::atomic<bool> here = false;
  if (here) return call_nvrtc_here(request);
  NvrtcAnswer answer = call_nvrtc_apart(request);
  if (answer.end != NvrtcAnswer::End::NotStarted) return answer;
  here = true;
  warn(make_diagnostic(Code::DeviceCompilerUnusable, {},
                       fmt::format("NVRTC runs in this process, which ends where NVRTC crashes: {}", answer.problem)));
  return call_nvrtc_here(request);
}

}  // namespace

NvrtcAnswer Nvrtc::ask(const DeviceCompileRequest& request, const std::vector<std::string>& options, bool ptx) const {
  using End = NvrtcAnswer::End;
  NvrtcRequest asked{builtins_, path(), ptx, std::string(request.text), options};
  NvrtcAnswer answer = call_nvrtc(asked);
  if (answer.end == End::Crashed) {
    asked.options.push_back(kFewOptimizations);
    NvrtcAnswer again = call_nvrtc(asked);
    if (again.end == End::Answered && again.result == kSuccess) {
      warn(
          make_diagnostic(Code::DeviceCompilerFailed, request.location,
                          fmt::format("NVRTC {} crashed ({}) on kernel '{}': it was compiled with fewer optimizations, "
                                      "and may be slower than it should be",
                                      version(), answer.problem, request.name),
                          "other tile sizes, or another number of threads, often keep clear of what it stumbles over"));
      answer = std::move(again);
    }
  }
  answer.log = without_end(std::move(answer.log));
  if (answer.end == End::NotStarted)
    fail(Code::DeviceCompilerUnusable, {}, fmt::format("NVRTC cannot be loaded: {}", answer.problem), kInstall);
  if (answer.end != End::Answered)
    fail(Code::DeviceCompilerFailed, request.location,
         answer.end == End::TimedOut ? fmt::format("NVRTC {} did not finish kernel '{}' for {} in time and was stopped",
                                                   version(), request.name, request.arch)
                                     : fmt::format("NVRTC {} crashed ({}) on kernel '{}' for {}, a mistake of its own",
                                                   version(), answer.problem, request.name, request.arch),
         fmt::format("take other tile sizes or another number of threads, or another NVRTC (TILEWRIGHT_NVRTC); {}",
                     keep_failed_text(request.name, "cu", request.text)));
  return answer;
}

void Nvrtc::fail_to_compile(const DeviceCompileRequest& request, const NvrtcAnswer& answer) const {
  if (answer.result == kInvalidOption && answer.log.find("gpu-architecture") != std::string::npos)
    fail(Code::DeviceArchitecture, request.location,
         fmt::format("NVRTC {} does not know the architecture '{}'; it knows sm_{}", version(), request.arch,
                     fmt::join(architectures(), ", sm_")));
  if (answer.result == kBuiltinMissing)
    fail(Code::DeviceCompilerUnusable, {}, fmt::format("{} is not complete: {}", path(), answer.log), kInstall);
  std::string shown = excerpt(request.text, line_after(answer.log, fmt::format("{}(", kTextName)));
  if (const int line = line_after(answer.log, "ptx input, line "); shown.empty() && line > 0) {
    shown = excerpt(ptx_of(request), line);
    if (!shown.empty()) shown = "in the PTX of the text:\n" + shown;
  }
  fail(Code::DeviceCompilerFailed, request.location,
       fmt::format("NVRTC {} refused kernel '{}' for {} ({}):\n{}{}{}", version(), request.name, request.arch,
                   loaded().error_text(answer.result), first_lines(answer.log, 20), shown.empty() ? "" : "\n", shown),
       keep_failed_text(request.name, "cu", request.text));
}

DeviceBinary Nvrtc::compile(const DeviceCompileRequest& request) const {
  refuse_includes(request);
  std::vector<std::string> options = {"--gpu-architecture=" + request.arch};
  options.insert(options.end(), device_options().begin(), device_options().end());
  options.insert(options.end(), request.more_options.begin(), request.more_options.end());
  const auto start = std::chrono::steady_clock::now();
  NvrtcAnswer answer = ask(request, options, false);
  DeviceBinary binary;
  binary.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (answer.result != kSuccess) fail_to_compile(request, answer);
  binary.cubin = std::move(answer.code);
  check_internal(!binary.cubin.empty(), "NVRTC compiled kernel '{}' for {} and gives no cubin", request.name,
                 request.arch);
  binary.log = parse_device_log(answer.log);
  const DoubtfulCode code = doubtful_code(binary.cubin);
  if (code.traps && request.text.find("trap") == std::string::npos && request.text.find("assert") == std::string::npos)
    fail(Code::DeviceCompilerFailed, request.location,
         fmt::format(
             "NVRTC {} makes kernel '{}' end in a trap that its text does not have: something in it is undefined",
             version(), request.name),
         keep_failed_text(request.name, "cu", request.text));
  binary.doubtful = code.merged_clamp || (code.triple && negates(ptx_of(request)));
  return binary;
}

// ptxas counts lines of a text that nobody sees: the same compilation, stopped before ptxas, has it. Empty on failure.
std::string Nvrtc::ptx_of(const DeviceCompileRequest& request) const {
  if (!request.arch.starts_with("sm_")) return "";
  std::vector<std::string> options = {"--gpu-architecture=compute_" + request.arch.substr(3)};
  for (const std::string& option : device_options())
    if (!option.starts_with("--ptxas-options")) options.push_back(option);
  return ask(request, options, true).code;
}

}  // namespace tilewright::runtime
