#include "runtime/host_compiler.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>
#include <set>

#include "runtime/failed_text.h"
#include "runtime/process.h"
#include "support/diagnostic.h"

namespace tilewright::runtime {
namespace {

constexpr const char* kTextName = "kernel.cpp";
constexpr const char* kObjectName = "kernel.so";
constexpr const char* kNames[] = {"g++", "clang++", "c++"};
constexpr const char* kInstall =
    "install one (Debian: apt-get install g++), or set TILEWRIGHT_CXX to its absolute path";

// Empty in a set-user-id program: its caller must not choose what it runs or where it writes.
std::string environment_variable(const char* name) {
  const char* value = secure_getenv(name);
  return value ? value : "";
}

// What the compiler sees of our environment: where its own programs and libraries are, and nothing that changes what it
// makes (CPATH, GCC_EXEC_PREFIX, LANG...). HOME is for a compiler cache that stands in its place.
std::vector<std::string> compiler_environment(const std::string& scratch) {
  std::vector<std::string> environment = {"LC_ALL=C", "TMPDIR=" + scratch};
  for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH"})
    if (const char* value = secure_getenv(name)) environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

bool is_program(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// Relative entries of PATH are skipped: what they name depends on where the process happens to stand.
std::string search_path(std::string_view name) {
  const std::string path = environment_variable("PATH");
  for (size_t at = 0; at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    const std::string candidate = fmt::format("{}/{}", path.substr(at, end - at), name);
    if (candidate[0] == '/' && candidate.size() > name.size() + 1 && is_program(candidate)) return candidate;
    at = end + 1;
  }
  return "";
}

std::string chosen_path() {
  const std::string wish = environment_variable("TILEWRIGHT_CXX");
  if (wish.empty()) {
    for (const char* name : kNames)
      if (std::string path = search_path(name); !path.empty()) return path;
    fail(Code::HostCompilerMissing, {}, "no C++ compiler: the cpu engine looked for g++, clang++ and c++ on PATH",
         kInstall);
  }
  const bool is_path = wish.find('/') != std::string::npos;
  if (is_path && wish[0] != '/')
    fail(Code::HostCompilerMissing, {}, fmt::format("TILEWRIGHT_CXX is '{}', a relative path", wish),
         "give an absolute path, or a name on PATH");
  const std::string path = !is_path ? search_path(wish) : is_program(wish) ? wish : "";
  if (path.empty())
    fail(Code::HostCompilerMissing, {}, fmt::format("TILEWRIGHT_CXX is '{}', which is no program", wish), kInstall);
  return path;
}

// The version alone would miss a compiler that was rebuilt or patched in place.
std::string identify(const std::string& path) {
  const ProcessResult version =
      run_process({path, "--version"}, compiler_environment("/tmp"), "/", std::chrono::seconds(10));
  if (!version.started || version.timed_out || version.status != 0 || version.output.empty())
    fail(Code::HostCompilerMissing, {}, fmt::format("{} does not answer --version", path), kInstall);
  struct stat info {};
  stat(path.c_str(), &info);
  return fmt::format("{} ({} bytes, {}.{:09})", version.output.substr(0, version.output.find('\n')), info.st_size,
                     info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

// A directory of our own for one compilation, mode 0700 by mkdtemp; goes with everything in it.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string parent = environment_variable("TMPDIR");
    if (parent.empty() || parent[0] != '/') parent = "/tmp";
    path_ = parent + "/tilewright-XXXXXX";
    if (!mkdtemp(path_.data()))
      fail(Code::ScratchDirectory, {}, fmt::format("cannot make a directory in {}: {}", parent, std::strerror(errno)),
           "set TMPDIR to a directory that can be written");
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    if (DIR* directory = opendir(path_.c_str())) {
      while (const dirent* entry = readdir(directory)) unlinkat(dirfd(directory), entry->d_name, 0);
      closedir(directory);
    }
    rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

void write_text(const std::string& path, std::string_view text) {
  const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file || !file.write_all(text))
    fail(Code::ScratchDirectory, {}, fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

// Empty if there is no such file.
std::string read_bytes(const std::string& path) {
  const File file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::string bytes;
  char buffer[1 << 16];
  for (ssize_t count; file && (count = read(file.get(), buffer, sizeof buffer)) > 0;)
    bytes.append(buffer, static_cast<size_t>(count));
  return bytes;
}

bool is_clang(const HostCompiler& compiler) { return compiler.identity.find("clang") != std::string::npos; }

// GCC: no start files and only the libraries that are used. A kernel has no constructors, and this saves 8 of 50 ms.
// libgomp is named even where the process has it: a kernel's symbols are not looked up in what others have loaded.
std::vector<std::string> command_line(const HostCompiler& compiler, const std::vector<std::string>& flags) {
  std::vector<std::string> line = {"-x", "c++"};
  line.insert(line.end(), flags.begin(), flags.end());
  line.insert(line.end(), {kTextName, "-o", kObjectName, "-shared", "-Wl,--as-needed"});
  if (is_clang(compiler))
    line.push_back("-lm");
  else
    line.insert(line.end(), {"-nostdlib", "-lgomp", "-lm", "-lgcc", "-lc"});
  return line;
}

}  // namespace

HostCompiler find_host_compiler() {
  HostCompiler compiler;
  compiler.path = chosen_path();
  compiler.identity = identify(compiler.path);
  return compiler;
}

std::vector<HostCompiler> host_compilers_of_path() {
  std::vector<HostCompiler> out;
  std::set<std::pair<dev_t, ino_t>> seen;  // one program may have two names
  for (const char* name : kNames) {
    const std::string path = search_path(name);
    struct stat info {};
    if (path.empty() || stat(path.c_str(), &info) != 0 || !seen.emplace(info.st_dev, info.st_ino).second) continue;
    try {
      out.push_back({path, identify(path)});
    } catch (const Error&) {
      continue;
    }
  }
  return out;
}

HostCompiler host_compiler() {
  static std::mutex mutex;
  static std::string asked;
  static std::optional<HostCompiler> found;
  std::lock_guard lock(mutex);
  const std::string question = environment_variable("TILEWRIGHT_CXX") + '\n' + environment_variable("PATH");
  if (!found || asked != question) {
    found = find_host_compiler();
    asked = question;
  }
  return *found;
}

const std::vector<std::string>& kernel_flags() {
  static const std::vector<std::string> flags = {
      "-std=c++17", "-O3", "-fPIC", "-fopenmp", "-pipe", "-w",
      // Results must be the interpreter's, bit for bit: a*b+c stays two roundings unless the text says fma.
      "-ffp-contract=off",
      // Only errno and the exception flags change, which nothing reads. The second turns selects into masks: with AVX2
      // an exp2 loop takes 0.41 ns an element instead of 1.90, with AVX-512 0.25 instead of 0.30 (g++ 12, Zen 4).
      "-fno-math-errno", "-fno-trapping-math",
      // Integers wrap as in the language, and shared memory is read as whatever type a view gives it.
      "-fwrapv", "-fno-strict-aliasing",
      // A kernel throws nothing and exports tw_entry alone. -nostdlib needs the first two.
      "-fno-exceptions", "-fno-asynchronous-unwind-tables", "-fno-rtti", "-fvisibility=hidden", "-fno-stack-protector",
      // Same text, same bytes.
      "-fno-ident", "-Wl,--build-id=none"};
  return flags;
}

std::string run_compiler(const HostCompiler& compiler, const CompilerRun& run) {
  const ScratchDirectory scratch;
  for (const auto& [name, bytes] : run.files) write_text(fmt::format("{}/{}", scratch.path(), name), bytes);
  std::vector<std::string> line = run.arguments;
  line.insert(line.begin(), compiler.path);
  const ProcessResult result = run_process(line, compiler_environment(scratch.path()), scratch.path(), run.deadline);
  const auto& [text_name, text] = run.files.front();
  const auto kept = [&] { return keep_failed_text(run.dump_name, text_name.substr(text_name.rfind('.') + 1), text); };
  if (!result.started) fail(Code::HostCompilerFailed, {}, fmt::format("{} cannot be started", compiler.path), kInstall);
  if (result.timed_out)
    fail(Code::HostCompilerTimedOut, {},
         fmt::format("{} did not finish kernel '{}' in {} s and was stopped", compiler.path, run.dump_name,
                     static_cast<double>(run.deadline.count()) / 1000),
         kept());
  std::string object = read_bytes(fmt::format("{}/{}", scratch.path(), run.result));
  // The linker's words differ, but not the name; Debian's clang comes without it.
  if (result.status > 0 && result.output.find("-lomp") != std::string::npos)
    fail(Code::HostCompilerFailed, {},
         fmt::format("{} comes without OpenMP's library, which kernels need", compiler.path),
         "install it (Debian: apt-get install libomp-dev), or set TILEWRIGHT_CXX to another compiler");
  if (result.status > 0 || object.empty())
    fail(Code::HostCompilerFailed, {},
         fmt::format("{} refused kernel '{}' (status {}):\n{}", compiler.path, run.dump_name, result.status,
                     first_lines(result.output, 20)),
         kept());
  return object;
}

// A text that ends the optimizer's own process is compiled once more with less of it: results are the same.
std::string compile_shared_object(const HostCompiler& compiler, const CompileRequest& request) {
  const auto run = [&](const std::vector<std::string>& flags) {
    return run_compiler(
        compiler,
        {{{kTextName, request.text}}, command_line(compiler, flags), kObjectName, request.deadline, request.dump_name});
  };
  try {
    return run(request.flags);
  } catch (const CompileError& error) {
    if (error.diagnostic().message.find("internal compiler error") == std::string::npos) throw;
    std::vector<std::string> fewer = request.flags;
    fewer.push_back("-O1");
    return run(fewer);
  }
}

}  // namespace tilewright::runtime
