#include "runtime/cuda_driver.h"

#include <cstdlib>
#include <map>
#include <mutex>

#include "support/diagnostic.h"

namespace tilewright::runtime::cuda {
namespace {

constexpr const char* kInstall =
    "install NVIDIA's driver; in a container, start it with the GPU (docker run --gpus all); TILEWRIGHT_LIBCUDA names "
    "libcuda.so where the dynamic linker does not find it";

// The name of the first entry point that is missing, or null.
const char* load_entry_points(const LoadedLibrary& library, Driver& d) {
  const char* missing = nullptr;
  const auto get = [&](const char* name, auto& slot) {
    if (!library.load(name, slot) && !missing) missing = name;
  };
  get("cuInit", d.init), get("cuDriverGetVersion", d.driver_version);
  get("cuGetErrorName", d.error_name), get("cuGetErrorString", d.error_text);
  get("cuDeviceGetCount", d.device_count), get("cuDeviceGet", d.device_get);
  get("cuDeviceGetName", d.device_name), get("cuDeviceGetAttribute", d.device_attribute);
  get("cuDeviceTotalMem_v2", d.device_memory), get("cuDevicePrimaryCtxRetain", d.primary_context_retain);
  get("cuCtxGetCurrent", d.context_get), get("cuCtxPushCurrent_v2", d.context_push);
  get("cuCtxPopCurrent_v2", d.context_pop), get("cuCtxSynchronize", d.context_synchronize);
  get("cuModuleLoadData", d.module_load), get("cuModuleUnload", d.module_unload);
  get("cuModuleGetFunction", d.module_function), get("cuFuncGetAttribute", d.function_attribute);
  get("cuFuncSetAttribute", d.function_set_attribute), get("cuLaunchKernelEx", d.launch);
  get("cuMemAlloc_v2", d.memory_allocate), get("cuMemFree_v2", d.memory_free);
  get("cuMemGetInfo_v2", d.memory_info), get("cuMemHostAlloc", d.host_allocate);
  get("cuMemFreeHost", d.host_free), get("cuMemcpyHtoDAsync_v2", d.copy_to_device);
  get("cuMemcpyDtoHAsync_v2", d.copy_to_host), get("cuMemcpyDtoDAsync_v2", d.copy_on_device);
  get("cuMemsetD8Async", d.set_bytes), get("cuPointerGetAttribute", d.pointer_attribute);
  get("cuStreamCreate", d.stream_create), get("cuStreamDestroy_v2", d.stream_destroy);
  get("cuStreamSynchronize", d.stream_synchronize), get("cuStreamIsCapturing", d.stream_is_capturing);
  get("cuThreadExchangeStreamCaptureMode", d.exchange_capture_mode);
  get("cuEventCreate", d.event_create), get("cuEventDestroy_v2", d.event_destroy);
  get("cuEventRecord", d.event_record), get("cuEventSynchronize", d.event_synchronize);
  get("cuEventElapsedTime", d.event_elapsed);
  library.load("cuTensorMapEncodeTiled", d.tensor_map_encode);
  library.load("cuStreamGetId", d.stream_id);
  return missing;
}

std::string chosen_library() {
  const char* wish = secure_getenv("TILEWRIGHT_LIBCUDA");
  return wish && *wish ? wish : "libcuda.so.1";
}

}  // namespace

const Driver& Driver::get() {
  static std::mutex mutex;
  static auto* const found = new std::map<std::string, const Driver*>;  // a driver is never unloaded
  std::lock_guard lock(mutex);
  const std::string name = chosen_library();
  const Driver*& driver = (*found)[name];
  if (driver) return *driver;
  std::string problem;
  const LoadedLibrary library = LoadedLibrary::open({name}, problem);
  if (!library) fail(Code::CudaDriverMissing, {}, fmt::format("no CUDA driver: {}", problem), kInstall);
  driver = new Driver(library);
  return *driver;
}

Driver::Driver(const LoadedLibrary& library) : path(library.path()) {
  if (const char* missing = load_entry_points(library, *this))
    fail(Code::CudaDriverTooOld, {}, fmt::format("the CUDA driver {} has no {}", path, missing),
         "CUDA 11.8 or newer is needed, 12.0 for Hopper: update NVIDIA's driver");
  driver_version(&version);
  const Result started = init(0);
  if (started == kSuccess) device_count(&devices);
  if (started != kSuccess || devices == 0)
    fail(Code::CudaDeviceMissing, {},
         fmt::format("the CUDA driver {} finds no device ({})", path,
                     describe(started == kSuccess ? kNoDevice : started)),
         "nvidia-smi shows what the driver sees; CUDA_VISIBLE_DEVICES hides devices");
}

std::string Driver::describe(Result result) const {
  const char *name = nullptr, *text = nullptr;
  if (error_name(result, &name) != kSuccess || !name) return fmt::format("error {}", result);
  if (error_text(result, &text) != kSuccess || !text) return name;
  return fmt::format("{}: {}", name, text);
}

void Driver::fail_call(Result result, const std::string& what) const {
  if (result == kOutOfMemory) fail(Code::OutOfMemory, {}, fmt::format("cannot {}: {}", what, describe(result)));
  // Launches are asynchronous: what a kernel did wrong comes out of a later call.
  // CUDA_ERROR_ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, ASSERT, and the faults from HARDWARE_STACK_ERROR to LAUNCH_FAILED.
  const bool sticky = result == 700 || result == 702 || result == 710 || (result >= 714 && result <= 719);
  fail(Code::CudaCallFailed, {}, fmt::format("cannot {}: {}", what, describe(result)),
       sticky ? "a kernel launched before this call failed, and the device's context is lost; run under "
                "compute-sanitizer to see which"
              : "");
}

}  // namespace tilewright::runtime::cuda
