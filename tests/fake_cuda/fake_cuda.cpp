// A stand-in for libcuda.so.1: the entry points that cuda_driver.h loads, without a device.
#include "fake_cuda/fake_cuda.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "fake_cuda/host_threads.h"

using namespace tilewright::runtime::cuda;
using tilewright::fake_cuda::EncodedMap;
using tilewright::fake_cuda::HostKernel;
using tilewright::fake_cuda::HostLaunch;
using tilewright::fake_cuda::State;

namespace {

State g_state;
std::recursive_mutex g_mutex;
std::map<uint64_t, std::pair<size_t, int>> g_memory;  // address -> bytes, device
std::map<void*, std::string> g_functions;
struct Library {
  void* opened = nullptr;
  int file = -1;  // open as long as it is: dlopen knows libraries by their names
};
std::map<Module, Library> g_libraries;  // modules that run on the host
std::map<void*, HostKernel> g_kernels;
std::string g_fault;  // of the launch before
thread_local std::vector<Context> t_contexts;

// Contexts are 0x1000 + device.
Context context_of(int device) { return reinterpret_cast<Context>(uintptr_t{0x1000} + static_cast<uintptr_t>(device)); }
int current_device() {
  return t_contexts.empty() ? -1 : static_cast<int>(reinterpret_cast<uintptr_t>(t_contexts.back()) - 0x1000);
}

constexpr Result kLaunchFailed = 719;

Result begin(const char* name) {
  const std::lock_guard lock(g_mutex);
  g_state.calls.push_back(name);
  return g_state.failing == name ? g_state.failing_result : kSuccess;
}

// Entry points that work in a context.
Result begin_in_context(const char* name) {
  constexpr Result kInvalidContext = 201;
  return current_device() < 0 ? kInvalidContext : begin(name);
}

// A module as dlopen has it; null: it is none that runs on the host. How long it is, its head says.
Library open_library(const void* image) {
  struct Header {
    unsigned char magic[16];
    uint16_t type, machine;
    uint32_t version;
    uint64_t entry, programs, sections;
    uint32_t flags;
    uint16_t header_bytes, program_bytes, program_count, section_bytes, section_count, names;
  } header;
  if (std::strncmp(static_cast<const char*>(image), "\177ELF\2\1\1", 7) != 0) return {};
  std::memcpy(&header, image, sizeof header);
  constexpr uint16_t kX86 = 62;
  if (header.machine != kX86) return {};
  const size_t bytes = header.sections + size_t{header.section_bytes} * header.section_count;
  Library out;
  out.file = memfd_create("kernels", MFD_CLOEXEC);
  if (out.file >= 0 && write(out.file, image, bytes) == static_cast<ssize_t>(bytes))
    out.opened = dlopen(("/proc/self/fd/" + std::to_string(out.file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!out.opened) close(out.file);
  return out;
}

Result run(const HostKernel& kernel, const LaunchConfig& config, void** parameters) {
  HostLaunch launch;
  std::memcpy(launch.grid, config.grid, sizeof launch.grid),
      std::memcpy(launch.block, config.block, sizeof launch.block);
  launch.shared_bytes = config.dynamic_shared_bytes;
  for (unsigned i = 0; i < config.attribute_count; ++i) {
    const LaunchAttribute& a = config.attributes[i];
    if (a.id == LaunchAttribute::Id::ClusterDimension) std::memcpy(launch.cluster, a.value, sizeof launch.cluster);
    if (a.id == LaunchAttribute::Id::Cooperative) launch.cooperative = a.value[0] != 0;
  }
  g_fault = tilewright::fake_cuda::run_on_host(kernel, launch, parameters, g_state.maps);
  return g_fault.empty() ? kSuccess : kLaunchFailed;
}

}  // namespace

constexpr Result kCaptureUnsupported = 900;

extern "C" {

State* fake_cuda_state() { return &g_state; }

Result cuInit(unsigned) {
  const std::lock_guard lock(g_mutex);
  g_state.calls.push_back("cuInit");
  return g_state.init_result;
}
Result cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }
Result cuGetErrorName(Result result, const char** name) {
  static const std::map<Result, const char*> names = {
      {1, "CUDA_ERROR_INVALID_VALUE"},     {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"},       {201, "CUDA_ERROR_INVALID_CONTEXT"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}, {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"}};
  const auto at = names.find(result);
  return *name = at == names.end() ? nullptr : at->second, at == names.end() ? kInvalidValue : kSuccess;
}
Result cuGetErrorString(Result result, const char** text) {
  const bool faulty = result == kLaunchFailed && !g_fault.empty();
  return *text = faulty ? g_fault.c_str() : result == kOutOfMemory ? "out of memory" : "something is wrong", kSuccess;
}
Result cuDeviceGetCount(int* count) { return *count = g_state.devices, kSuccess; }
Result cuDeviceGet(DeviceNumber* device, int ordinal) { return *device = ordinal, begin("cuDeviceGet"); }
Result cuDeviceGetName(char* name, int size, DeviceNumber) {
  std::strncpy(name, "Fake H200", static_cast<size_t>(size));
  return kSuccess;
}
Result cuDeviceGetAttribute(int* value, DeviceAttribute attribute, DeviceNumber) {
  switch (attribute) {
    case DeviceAttribute::ComputeMajor: *value = g_state.compute_major; break;
    case DeviceAttribute::ComputeMinor: *value = g_state.compute_minor; break;
    case DeviceAttribute::SmCount: *value = 132; break;
    case DeviceAttribute::MaxThreadsPerBlock: *value = 1024; break;
    case DeviceAttribute::SharedBytesPerBlockOptIn: *value = 232448; break;
    case DeviceAttribute::L2Bytes: *value = 50 << 20; break;
    default: *value = 1;
  }
  return begin("cuDeviceGetAttribute");
}
Result cuDeviceTotalMem_v2(size_t* bytes, DeviceNumber) { return *bytes = size_t{1} << 37, kSuccess; }
Result cuDevicePrimaryCtxRetain(Context* context, DeviceNumber device) {
  return *context = context_of(device), begin("cuDevicePrimaryCtxRetain");
}
Result cuCtxGetCurrent(Context* context) {
  return *context = t_contexts.empty() ? nullptr : t_contexts.back(), kSuccess;
}
Result cuCtxPushCurrent_v2(Context context) { return t_contexts.push_back(context), begin("cuCtxPushCurrent"); }
Result cuCtxPopCurrent_v2(Context* context) {
  if (t_contexts.empty()) return kInvalidValue;
  *context = t_contexts.back();
  t_contexts.pop_back();
  return kSuccess;
}
Result cuCtxSynchronize() { return begin_in_context("cuCtxSynchronize"); }

Result cuModuleLoadData(Module* module, const void* image) {
  const std::lock_guard lock(g_mutex);
  if (const Result r = begin_in_context("cuModuleLoadData"); r != kSuccess) return r;
  if (std::memcmp(image, "\177ELF", 4) != 0) return kNoBinaryForGpu;
  ++g_state.loads_of_context[current_device()];
  *module = reinterpret_cast<Module>(uintptr_t{0x2000} + static_cast<uintptr_t>(++g_state.modules));
  if (const Library library = open_library(image); library.opened) g_libraries[*module] = library;
  return kSuccess;
}
Result cuModuleUnload(Module module) {
  const std::lock_guard lock(g_mutex);
  if (const auto at = g_libraries.find(module); at != g_libraries.end()) {
    dlclose(at->second.opened), close(at->second.file);
    g_libraries.erase(at);
  }
  return begin_in_context("cuModuleUnload");
}
Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  if (const Result r = begin_in_context("cuModuleGetFunction"); r != kSuccess) return r;
  const std::lock_guard lock(g_mutex);
  void* handle = reinterpret_cast<void*>(uintptr_t{0x3000} + g_functions.size());
  g_functions[handle] = name;
  if (const auto at = g_libraries.find(module); at != g_libraries.end())
    g_kernels[handle] = tilewright::fake_cuda::host_kernel(at->second.opened, name);
  return *function = static_cast<Function>(handle), kSuccess;
}
Result cuFuncGetAttribute(int* value, FunctionAttribute attribute, Function) {
  switch (attribute) {
    case FunctionAttribute::MaxThreadsPerBlock: *value = g_state.max_threads; break;
    case FunctionAttribute::StaticSharedBytes: *value = g_state.static_shared_bytes; break;
    default: *value = 40;
  }
  return begin("cuFuncGetAttribute");
}
Result cuFuncSetAttribute(Function, FunctionAttribute attribute, int value) {
  const std::lock_guard lock(g_mutex);
  g_state.function_settings.emplace_back(static_cast<int>(attribute), value);
  return begin("cuFuncSetAttribute");
}
Result cuLaunchKernelEx(const LaunchConfig* config, Function function, void** parameters, void**) {
  if (const auto at = g_kernels.find(function); at != g_kernels.end() && at->second.run) {
    const std::lock_guard lock(g_mutex);
    return run(at->second, *config, parameters);
  }
  if (g_state.parameter_bytes.empty() && !g_state.on_launch && g_state.failing.empty()) return kSuccess;  // for timing
  const std::lock_guard lock(g_mutex);
  if (const Result r = begin_in_context("cuLaunchKernelEx"); r != kSuccess) return r;
  tilewright::fake_cuda::Launch launch;
  launch.function = g_functions.at(function);
  launch.config = *config;
  launch.attributes.assign(config->attributes, config->attributes + config->attribute_count);
  for (size_t i = 0; i < g_state.parameter_bytes.size(); ++i) {
    const char* at = static_cast<const char*>(parameters[i]);
    launch.parameter_places.push_back(parameters[i]);
    launch.parameters.emplace_back(at, at + g_state.parameter_bytes[i]);
  }
  if (g_state.on_launch) g_state.on_launch(launch);
  g_state.launches.push_back(std::move(launch));
  return kSuccess;
}

Result cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  if (const Result r = begin_in_context("cuMemAlloc"); r != kSuccess) return r;
  if (bytes > size_t{1} << 40) return kOutOfMemory;
  const std::lock_guard lock(g_mutex);
  *address = reinterpret_cast<DevicePointer>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  g_memory[*address] = {bytes, current_device()};
  ++g_state.allocations;
  return kSuccess;
}
Result cuMemFree_v2(DevicePointer address) {
  if (const Result r = begin_in_context("cuMemFree"); r != kSuccess) return r;
  const std::lock_guard lock(g_mutex);
  if (g_memory.erase(address) != 1) return kInvalidValue;
  std::free(reinterpret_cast<void*>(address));
  ++g_state.frees;
  return kSuccess;
}
Result cuMemAllocAsync(DevicePointer* address, size_t bytes, Stream) {
  g_state.calls.push_back("cuMemAllocAsync");
  return cuMemAlloc_v2(address, bytes);
}
Result cuMemFreeAsync(DevicePointer address, Stream) {
  g_state.calls.push_back("cuMemFreeAsync");
  return cuMemFree_v2(address);
}
Result cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = 1, *total = 2, kSuccess; }
Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) { return *memory = std::malloc(bytes), kSuccess; }
Result cuMemFreeHost(void* memory) { return std::free(memory), kSuccess; }
Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, Stream) {
  if (const Result r = begin_in_context("cuMemcpyHtoDAsync"); r != kSuccess) return r;
  return std::memcpy(reinterpret_cast<void*>(to), from, bytes), kSuccess;
}
Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, Stream) {
  if (const Result r = begin_in_context("cuMemcpyDtoHAsync"); r != kSuccess) return r;
  return std::memcpy(to, reinterpret_cast<const void*>(from), bytes), kSuccess;
}
Result cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  return cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr);
}
Result cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
}
Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, Stream) {
  if (const Result r = begin_in_context("cuMemcpyDtoDAsync"); r != kSuccess) return r;
  return std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes), kSuccess;
}
Result cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, Stream) {
  if (const Result r = begin_in_context("cuMemsetD8Async"); r != kSuccess) return r;
  return std::memset(reinterpret_cast<void*>(to), value, bytes), kSuccess;
}
Result cuPointerGetAttribute(void* value, int attribute, DevicePointer address) {
  const std::lock_guard lock(g_mutex);
  auto at = g_memory.upper_bound(address);
  if (at == g_memory.begin() || address >= (--at)->first + at->second.first) return kInvalidValue;
  if (attribute == kPointerDeviceOrdinal) return *static_cast<int*>(value) = at->second.second, kSuccess;
  return *static_cast<unsigned*>(value) = kMemoryDevice, kSuccess;
}
Result cuStreamCreate(Stream* stream, unsigned) { return *stream = nullptr, kSuccess; }
Result cuStreamDestroy_v2(Stream) { return kSuccess; }
Result cuStreamSynchronize(Stream) { return begin_in_context("cuStreamSynchronize"); }
Result cuStreamIsCapturing(Stream, int* capturing) { return *capturing = g_state.capturing, kSuccess; }
Result cuStreamGetId(Stream stream, unsigned long long* id) {
  if (g_state.capturing) return kCaptureUnsupported;  // and the capture would be void
  return *id = reinterpret_cast<uintptr_t>(stream), kSuccess;
}
Result cuThreadExchangeStreamCaptureMode(int* mode) { return std::swap(g_state.capture_mode, *mode), kSuccess; }
Result cuEventCreate(Event* event, unsigned) {
  return *event = reinterpret_cast<Event>(new double(0)), begin_in_context("cuEventCreate");
}
Result cuEventDestroy_v2(Event event) { return delete reinterpret_cast<double*>(event), kSuccess; }
Result cuEventRecord(Event event, Stream) {
  using namespace std::chrono;
  *reinterpret_cast<double*>(event) = duration<double, std::milli>(steady_clock::now().time_since_epoch()).count();
  return begin_in_context("cuEventRecord");
}
Result cuEventSynchronize(Event) { return kSuccess; }
Result cuEventElapsedTime(float* milliseconds, Event a, Event b) {
  *milliseconds = static_cast<float>(*reinterpret_cast<double*>(b) - *reinterpret_cast<double*>(a));
  return kSuccess;
}
Result cuTensorMapEncodeTiled(TensorMap* map, int type, unsigned rank, void* address, const uint64_t* dims,
                              const uint64_t* strides, const unsigned* box, const unsigned* element_strides,
                              int interleave, int swizzle, int l2_promotion, int oob_fill) {
  const std::lock_guard lock(g_mutex);
  if (const Result r = begin("cuTensorMapEncodeTiled"); r != kSuccess) return r;
  EncodedMap m{type, interleave, swizzle, l2_promotion, oob_fill, reinterpret_cast<uint64_t>(address), {}, {}, {}, {}};
  m.dims.assign(dims, dims + rank), m.strides.assign(strides, strides + rank - 1);
  m.box.assign(box, box + rank), m.element_strides.assign(element_strides, element_strides + rank);
  g_state.maps.push_back(std::move(m));
  for (uint64_t& word : map->words) word = g_state.maps.size();  // tells a test which one it got
  return kSuccess;
}
}
