#include "runtime/cuda_module.h"

#include <charconv>

#include "support/diagnostic.h"

namespace tilewright::runtime::cuda {
namespace {

constexpr int64_t kPlaceholderBytes = 256;
constexpr int kPortableClusterSize = 8;  // CUDA programming guide, thread block clusters

std::string text(const CudaDevice& device) { return fmt::format("cuda:{} ({})", device.index, device.properties.name); }

// While it lives this thread may allocate memory and use streams that are not captured, though another is.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const Driver& driver) : driver_(driver) {
    driver_.check(driver_.exchange_capture_mode(&mode_), "change the mode of captures");
  }
  ~RelaxedCapture() { driver_.exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;

 private:
  const Driver& driver_;
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED; then the mode before
};

// On a stream of its own: no other waits for it, and none is captured. Done when it returns.
void clear(const CudaDevice& device, void* memory, int64_t bytes) {
  const Driver& d = device.driver;
  Stream stream = nullptr;
  d.check(d.stream_create(&stream, 1), "create a stream");  // CU_STREAM_NON_BLOCKING
  Result result = d.set_bytes(reinterpret_cast<uint64_t>(memory), 0, static_cast<size_t>(bytes), stream);
  if (result == kSuccess) result = d.stream_synchronize(stream);
  d.stream_destroy(stream);
  d.check(result, "clear memory");
}

}  // namespace

bool runs_on(const std::string& arch, const DeviceProperties& p) {
  int number = 0;
  const char* end = arch.data() + arch.size();
  const auto [stop, error] = std::from_chars(arch.data() + std::min<size_t>(3, arch.size()), end, number);
  if (error != std::errc()) return false;
  const int major = number / 10, minor = number % 10;
  return major == p.compute_major && (stop == end ? minor <= p.compute_minor : minor == p.compute_minor);
}

void* StreamMemory::get(const CudaDevice& device, size_t index, int64_t bytes, bool zeroed) {
  if (blocks_.size() <= index) blocks_.resize(index + 1);
  Block& block = blocks_[index];
  if (block.memory && block.bytes >= bytes) return block.memory.get();
  std::shared_ptr<void> memory = allocate(device, bytes);
  if (block.memory) outgrown_.push_back(std::move(block.memory));
  block = {std::move(memory), bytes};
  if (zeroed) clear(device, block.memory.get(), bytes);
  return block.memory.get();
}

CudaModule::CudaModule(const CudaDevice& device, const std::string& program, const std::string& arch,
                       const std::string& cubin, const CudaPlan& plan)
    : device_(device) {
  if (!runs_on(arch, device.properties))
    fail(Code::CudaDeviceUnfit, {},
         fmt::format("{}: compiled for {}, but {} is {}", program, arch, text(device), device.properties.arch()),
         "compile for the device that runs it");
  const ScopedDevice scope(device);
  const Driver& d = device.driver;
  if (!plan.tensor_maps.empty()) {
    placeholder_ = allocate(device, kPlaceholderBytes);
    d.check(d.set_bytes(placeholder(), 0, kPlaceholderBytes, nullptr), "clear memory");
    d.check(d.stream_synchronize(nullptr), "wait for the default stream");
  }
  d.check(d.module_load(&module_, cubin.data()), fmt::format("load '{}' on {}", program, text(device)));
  for (const KernelLaunch& launch : plan.launches) prepare(program, launch);
}

CudaModule::~CudaModule() {
  Context current = nullptr;
  device_.driver.context_get(&current);
  const bool other = current != device_.context && device_.driver.context_push(device_.context) == kSuccess;
  if (module_) device_.driver.module_unload(module_);
  if (other) device_.driver.context_pop(&current);
}

void CudaModule::prepare(const std::string& program, const KernelLaunch& launch) {
  const Driver& d = device_.driver;
  Function function = nullptr;
  const std::string what = fmt::format("prepare kernel '{}' of '{}'", launch.function, program);
  d.check(d.module_function(&function, module_, launch.function.c_str()), what);
  const auto attribute = [&](FunctionAttribute a) {
    int value = 0;
    d.check(d.function_attribute(&value, a, function), what);
    return value;
  };
  const int threads = launch.block[0] * launch.block[1] * launch.block[2];
  const int most_threads = attribute(FunctionAttribute::MaxThreadsPerBlock);
  if (threads > most_threads)
    fail(Code::CudaDeviceUnfit, {},
         fmt::format("{}: a block of kernel '{}' has {} threads, but with its {} registers {} runs at most {}", program,
                     launch.function, threads, attribute(FunctionAttribute::Registers), text(device_), most_threads));
  const int shared = attribute(FunctionAttribute::StaticSharedBytes) + launch.dynamic_shared_bytes;
  if (shared > device_.properties.shared_bytes_per_block)
    fail(Code::CudaDeviceUnfit, {},
         fmt::format("{}: a block of kernel '{}' takes {} bytes of shared memory, but {} gives at most {}", program,
                     launch.function, shared, text(device_), device_.properties.shared_bytes_per_block),
         "use smaller tiles or fewer stages");
  const int cluster = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  if ((cluster > 1 && !device_.properties.clusters) || (launch.cooperative && !device_.properties.cooperative))
    fail(Code::CudaDeviceUnfit, {},
         fmt::format("{}: kernel '{}' is launched {}, which {} cannot do", program, launch.function,
                     cluster > 1 ? "in clusters" : "cooperatively", text(device_)));
  if (launch.dynamic_shared_bytes > 0)
    d.check(d.function_set_attribute(function, FunctionAttribute::MaxDynamicSharedBytes, launch.dynamic_shared_bytes),
            what);
  if (cluster > kPortableClusterSize)
    d.check(d.function_set_attribute(function, FunctionAttribute::NonPortableClusterSize, 1), what);
  functions_.push_back(function);
}

StreamMemory& CudaModule::memory_of(Stream stream) {
  // A handle may stand for another stream in each thread (CU_STREAM_PER_THREAD), or for one that came after it.
  unsigned long long id = reinterpret_cast<uint64_t>(stream);
  if (device_.driver.stream_id) device_.driver.check(device_.driver.stream_id(stream, &id), "ask which stream it is");
  std::lock_guard lock(mutex_);
  std::unique_ptr<StreamMemory>& memory = memory_[id];
  if (!memory) memory = std::make_unique<StreamMemory>();
  return *memory;
}

void* CudaModule::captured_memory(int64_t bytes, bool zeroed) {
  const RelaxedCapture relaxed(device_.driver);
  std::shared_ptr<void> memory = allocate(device_, bytes);
  if (zeroed) clear(device_, memory.get(), bytes);
  std::lock_guard lock(mutex_);
  captured_.push_back(std::move(memory));
  return captured_.back().get();
}

}  // namespace tilewright::runtime::cuda
