#include "runtime/nvrtc.h"

#include <dirent.h>
#include <dlfcn.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <regex>

#include "runtime/failed_text.h"
#include "runtime/machine_code.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

constexpr const char* kInstall =
    "install the package nvidia-cuda-nvrtc (pip) or a CUDA toolkit, or set TILEWRIGHT_NVRTC to the path of libnvrtc.so";
constexpr const char* kTextName = "kernel.cu";
constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

// nvrtcResult of nvrtc.h, as far as it is told apart.
constexpr int kSuccess = 0, kInvalidOption = 5, kBuiltinMissing = 7;

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

// The entry points of nvrtc.h that are used.
struct Nvrtc::Functions {
  using Handle = void*;
  int (*version)(int*, int*);
  int (*architecture_count)(int*);
  int (*architectures)(int*);
  int (*create)(Handle*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(Handle*);
  int (*compile)(Handle, int, const char* const*);
  int (*cubin_size)(Handle, size_t*);
  int (*cubin)(Handle, char*);
  int (*ptx_size)(Handle, size_t*);
  int (*ptx)(Handle, char*);
  int (*log_size)(Handle, size_t*);
  int (*log)(Handle, char*);
  const char* (*error_text)(int);

  // The name of the first that is missing, or null.
  const char* load(const LoadedLibrary& library) {
    const char* missing = nullptr;
    const auto get = [&](const char* name, auto& slot) {
      if (!library.load(name, slot) && !missing) missing = name;
    };
    get("nvrtcVersion", version), get("nvrtcGetNumSupportedArchs", architecture_count);
    get("nvrtcGetSupportedArchs", architectures), get("nvrtcCreateProgram", create);
    get("nvrtcDestroyProgram", destroy), get("nvrtcCompileProgram", compile);
    get("nvrtcGetCUBINSize", cubin_size), get("nvrtcGetCUBIN", cubin);
    get("nvrtcGetPTXSize", ptx_size), get("nvrtcGetPTX", ptx);
    get("nvrtcGetProgramLogSize", log_size), get("nvrtcGetProgramLog", log);
    get("nvrtcGetErrorString", error_text);
    return missing;
  }
};

// One compilation.
struct Nvrtc::Program {
  const Functions& call;
  Functions::Handle handle = nullptr;
  int result = kSuccess;

  Program(const Functions& functions, const std::string& text) : call(functions) {
    result = call.create(&handle, text.c_str(), kTextName, 0, nullptr, nullptr);
  }
  ~Program() {
    if (handle) call.destroy(&handle);
  }
  Program(const Program&) = delete;

  bool compile(const std::vector<std::string>& options) {
    std::vector<const char*> list;
    for (const std::string& option : options) list.push_back(option.c_str());
    if (result == kSuccess) result = call.compile(handle, static_cast<int>(list.size()), list.data());
    return result == kSuccess;
  }
  // One of the pairs of size and content; the size of a text counts its closing zero.
  std::string get(int (*size_of)(Functions::Handle, size_t*), int (*content)(Functions::Handle, char*)) const {
    size_t size = 0;
    if (!handle || size_of(handle, &size) != kSuccess || size == 0) return "";
    std::string bytes(size, '\0');
    return content(handle, bytes.data()) == kSuccess ? bytes : "";
  }
  std::string log() const {
    std::string text = get(call.log_size, call.log);
    while (!text.empty() && (text.back() == '\0' || text.back() == '\n')) text.pop_back();
    return text;
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

const Nvrtc& Nvrtc::get() {
  static std::mutex mutex;
  static auto* const found = new std::map<std::string, const Nvrtc*>;  // by TILEWRIGHT_NVRTC; never unloaded
  std::lock_guard lock(mutex);
  const Nvrtc*& nvrtc = (*found)[environment_variable("TILEWRIGHT_NVRTC")];
  if (nvrtc) return *nvrtc;
  std::string problem;
  LoadedLibrary library = LoadedLibrary::open(nvrtc_candidates(), problem);
  if (!library)
    fail(Code::DeviceCompilerMissing, {}, fmt::format("no NVRTC, the CUDA compiler: {}", problem), kInstall);
  nvrtc = new Nvrtc(std::move(library));
  return *nvrtc;
}

Nvrtc::Nvrtc(LoadedLibrary library) : library_(std::move(library)) {
  auto functions = std::make_shared<Functions>();
  if (const char* missing = functions->load(library_))
    fail(Code::DeviceCompilerUnusable, {}, fmt::format("{} has no {}: not NVRTC, or one before 11.2", path(), missing),
         kInstall);
  call_ = functions;
  int count = 0;
  if (call_->version(&major_, &minor_) != kSuccess || call_->architecture_count(&count) != kSuccess || count <= 0)
    fail(Code::DeviceCompilerUnusable, {}, fmt::format("{} does not tell its version", path()), kInstall);
  architectures_.resize(static_cast<size_t>(count));
  call_->architectures(architectures_.data());
  preload_builtins();
}

std::string Nvrtc::version() const { return fmt::format("{}.{}", major_, minor_); }

// NVRTC asks the dynamic linker for its second half by name, which a package's directory does not answer, unless it is
// loaded already.
void Nvrtc::preload_builtins() const {
  const std::string name = fmt::format("libnvrtc-builtins.so.{}", version());
  const size_t slash = path().rfind('/');
  std::string problem;
  if (slash != std::string::npos) LoadedLibrary::open({path().substr(0, slash + 1) + name, name}, problem);
}

namespace {

// Whether a signed integer is negated in PTX.
bool negates(const std::string& ptx) {
  static const std::regex negation(R"(neg\.s(16|32)|sub\.s(16|32)\s+%\w+,\s*0,)");
  return std::regex_search(ptx, negation);
}

}  // namespace

DeviceBinary Nvrtc::compile(const DeviceCompileRequest& request) const {
  refuse_includes(request);
  std::vector<std::string> options = {"--gpu-architecture=" + request.arch};
  options.insert(options.end(), device_options().begin(), device_options().end());
  options.insert(options.end(), request.more_options.begin(), request.more_options.end());
  const auto start = std::chrono::steady_clock::now();
  const std::string text(request.text);
  Program program(*call_, text);
  const bool compiled = program.compile(options);
  DeviceBinary binary;
  binary.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const std::string log = program.log();
  if (program.result == kInvalidOption && log.find("gpu-architecture") != std::string::npos)
    fail(Code::DeviceArchitecture, {},
         fmt::format("NVRTC {} does not know the architecture '{}'; it knows sm_{}", version(), request.arch,
                     fmt::join(architectures_, ", sm_")));
  if (program.result == kBuiltinMissing)
    fail(Code::DeviceCompilerUnusable, {}, fmt::format("{} is not complete: {}", path(), log), kInstall);
  if (!compiled) {
    std::string shown = excerpt(text, line_after(log, fmt::format("{}(", kTextName)));
    if (const int line = line_after(log, "ptx input, line "); shown.empty() && line > 0) {
      shown = excerpt(ptx_of(request), line);
      if (!shown.empty()) shown = "in the PTX of the text:\n" + shown;
    }
    fail(Code::DeviceCompilerFailed, {},
         fmt::format("NVRTC {} refused kernel '{}' for {} ({}):\n{}{}{}", version(), request.name, request.arch,
                     call_->error_text(program.result), first_lines(log, 20), shown.empty() ? "" : "\n", shown),
         keep_failed_text(request.name, "cu", request.text));
  }
  binary.cubin = program.get(call_->cubin_size, call_->cubin);
  check_internal(!binary.cubin.empty(), "NVRTC compiled kernel '{}' for {} and gives no cubin", request.name,
                 request.arch);
  binary.log = parse_device_log(log);
  const DoubtfulCode code = doubtful_code(binary.cubin);
  if (code.traps && text.find("trap") == std::string::npos && text.find("assert") == std::string::npos)
    fail(Code::DeviceCompilerFailed, {},
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
  const std::string text(request.text);
  Program program(*call_, text);
  return program.compile(options) ? program.get(call_->ptx_size, call_->ptx) : "";
}

}  // namespace tilewright::runtime
