#include "runtime/cpu_kernel.h"

#include <charconv>
#include <cstdlib>
#include <exception>

#include "embedded_text.h"
#include "runtime/host_compiler.h"
#include "runtime/kernel_cache.h"
#include "runtime/sha256.h"
#include "runtime/shared_object.h"
#include "runtime/strands.h"
#include "support/diagnostic.h"
#include "support/thread_team.h"

#include "runtime/kernel_abi.text.h"

namespace tilewright::runtime {
namespace {

using Entry = decltype(&tw_entry);

// What a kernel's report comes back to. Exceptions must not cross the kernel's frames: the first one waits here.
struct Host {
  CallReport& report;
  std::mutex mutex;
  std::exception_ptr error;
};

void take_report(void* host, int site, const long long* place, const unsigned long long* values, int count) {
  Host& h = *static_cast<Host*>(host);
  try {
    Place at;
    std::copy_n(place, at.size(), at.begin());
    const std::vector<uint64_t> copy(values, values + count);
    h.report.add(site, at, copy);
  } catch (...) {
    std::lock_guard lock(h.mutex);
    if (!h.error) h.error = std::current_exception();
  }
}

class CpuKernel final : public Callee {
 public:
  CpuKernel(std::shared_ptr<SharedObject> object, Entry entry)
      : object_(std::move(object)), entry_(entry), threads_(kernel_threads()) {}

  bool reads_arguments() const override { return false; }
  void run(const BoundCall& call, CallReport& report) override {
    static_assert(sizeof(int64_t) == sizeof(long long));
    Host host{report, {}, {}};
    const tw_call abi{call.buffers.data(),
                      reinterpret_cast<const long long*>(call.integers.data()),
                      &host,
                      take_report,
                      threads_,
                      run_strands,
                      run_blocks,
                      wait_for,
                      sync_grid};
    int failed = 0;
    run_team([&] { failed = entry_(&abi); });
    if (host.error) std::rethrow_exception(host.error);
    check_internal(failed == 0 || report.failed(), "{}: the kernel failed without a report", call.plan->name);
  }

 private:
  std::shared_ptr<SharedObject> object_;
  Entry entry_;
  int threads_;
};

// Everything the bytes of a kernel depend on.
std::string cache_key(const CpuKernelText& kernel, const HostCompiler& compiler,
                      const std::vector<std::string>& flags) {
  return fmt::format("tilewright cpu kernel 1\n{}\n{}\n{}\n{}\n{}", compiler.path, compiler.identity,
                     fmt::join(flags, " "), kernel.features.to_string(), kernel.text);
}

// The kernels that live in this process, so that one text is loaded once.
class LoadedKernels {
 public:
  std::shared_ptr<SharedObject> find(const std::string& key) {
    std::lock_guard lock(mutex_);
    const auto at = objects_.find(key);
    return at == objects_.end() ? nullptr : at->second.lock();
  }
  void add(const std::string& key, const std::shared_ptr<SharedObject>& object) {
    std::lock_guard lock(mutex_);
    std::erase_if(objects_, [](const auto& item) { return item.second.expired(); });
    objects_[key] = object;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<SharedObject>> objects_;  // by the key's hash
};

LoadedKernels& loaded_kernels() {
  static LoadedKernels* const kernels = new LoadedKernels;  // outlives executables in static storage
  return *kernels;
}

std::shared_ptr<SharedObject> load(const CpuKernelText& kernel, KernelOrigin& origin) {
  const HostCompiler compiler = host_compiler();
  std::vector<std::string> flags = kernel_flags();
  const std::vector<std::string> features = kernel.features.compiler_flags();
  flags.insert(flags.end(), features.begin(), features.end());
  flags.insert(flags.end(), kernel.more_flags.begin(), kernel.more_flags.end());
  const std::string key = cache_key(kernel, compiler, flags);
  const std::string hash = hex(sha256(key));
  origin = KernelOrigin::Memory;
  if (auto object = loaded_kernels().find(hash)) return object;
  KernelCache cache = KernelCache::from_environment();
  std::optional<CacheEntry> entry = cache.find(key);
  origin = entry ? KernelOrigin::Disk : KernelOrigin::Compiler;
  if (!entry) {
    entry = CacheEntry{kernel.name,
                       compile_shared_object(compiler, {kernel.text, flags, std::chrono::seconds(120), kernel.name})};
    cache.store(key, *entry);
  }
  auto object = std::make_shared<SharedObject>(entry->payload, kernel.name);
  loaded_kernels().add(hash, object);
  return object;
}

}  // namespace

std::string kernel_text_head() { return text::runtime_kernel_abi; }

int kernel_threads() {
  const char* wish = std::getenv("TILEWRIGHT_THREADS");
  if (!wish || !*wish) return usual_threads();
  int threads = 0;
  const char* end = wish + std::strlen(wish);
  const auto [stop, error] = std::from_chars(wish, end, threads);
  if (error != std::errc() || stop != end || threads < 1 || threads > 65536)
    fail(Code::SettingInvalid, {}, fmt::format("TILEWRIGHT_THREADS is '{}', which is no number of threads", wish));
  return std::min(threads, 4096);  // OpenMP keeps a team on a stack, which tens of thousands overflow
}

std::unique_ptr<Callee> build_cpu_kernel(const CpuKernelText& kernel, KernelOrigin* origin) {
  KernelOrigin ignored;
  std::shared_ptr<SharedObject> object = load(kernel, origin ? *origin : ignored);
  const auto entry = reinterpret_cast<Entry>(object->symbol(kernel.entry.c_str()));
  check_internal(entry, "kernel '{}' has no {}", kernel.name, kernel.entry);
  return std::make_unique<CpuKernel>(std::move(object), entry);
}

std::unique_ptr<Callee> bind_cpu_kernel(const void* entry) {
  keep_openmp(entry);
  return std::make_unique<CpuKernel>(nullptr, reinterpret_cast<Entry>(const_cast<void*>(entry)));
}

}  // namespace tilewright::runtime
