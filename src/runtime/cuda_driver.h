// The part of the CUDA driver API that we use, declared here so that building needs no CUDA: entry points by dlsym.
// Names, layouts and numbers are those of cuda.h (CUDA 13.0), which keeps them for binary compatibility.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/loaded_library.h"

namespace tilewright::runtime::cuda {

using Result = int;  // CUresult
using DeviceNumber = int;
using DevicePointer = uint64_t;
using Context = struct ContextOfDriver*;
using Module = struct ModuleOfDriver*;
using Function = struct FunctionOfDriver*;
using Stream = struct StreamOfDriver*;  // null: the legacy default stream
using Event = struct EventOfDriver*;

// CUresult
inline constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kNoBinaryForGpu = 209;

// CUdevice_attribute
enum class DeviceAttribute : int {
  MaxThreadsPerBlock = 1,
  ClockKilohertz = 13,
  SmCount = 16,
  MemoryClockKilohertz = 36,
  MemoryBusBits = 37,
  L2Bytes = 38,
  MaxThreadsPerSm = 39,
  ComputeMajor = 75,
  ComputeMinor = 76,
  SharedBytesPerSm = 81,
  RegistersPerSm = 82,
  CooperativeLaunch = 95,
  SharedBytesPerBlockOptIn = 97,
  ReservedSharedBytesPerBlock = 111,
  ClusterLaunch = 120,
  TensorMaps = 127,
};

// CUfunction_attribute
enum class FunctionAttribute : int {
  MaxThreadsPerBlock = 0,
  StaticSharedBytes = 1,
  LocalBytes = 3,
  Registers = 4,
  MaxDynamicSharedBytes = 8,
  NonPortableClusterSize = 14,
};

// CUpointer_attribute, CUmemorytype
inline constexpr int kPointerMemoryType = 2, kPointerIsManaged = 8, kPointerDeviceOrdinal = 9;
inline constexpr unsigned kMemoryHost = 1, kMemoryDevice = 2;

// CUlaunchAttribute: 72 bytes, the value a union of 64.
struct LaunchAttribute {
  enum class Id : int { Cooperative = 2, ClusterDimension = 4, ProgrammaticStreamSerialization = 6 };
  Id id;
  alignas(8) unsigned value[16];  // a flag in [0], or x, y, z
};
static_assert(sizeof(LaunchAttribute) == 72 && offsetof(LaunchAttribute, value) == 8);

// CUlaunchConfig
struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned dynamic_shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56 && offsetof(LaunchConfig, stream) == 32);

// CUtensorMap: opaque; 64-byte alignment is what the driver and the hardware ask for.
struct alignas(64) TensorMap {
  uint64_t words[16];
};
static_assert(sizeof(TensorMap) == 128);

// Entry points under the names of cuda.h, in the version that the comment names where there are several.
struct Driver {
  // The library of TILEWRIGHT_LIBCUDA, else libcuda.so.1, loaded and initialized once. LaunchError if there is none, if
  // it is too old, or if it finds no device.
  static const Driver& get();

  Result (*init)(unsigned flags);
  Result (*driver_version)(int*);
  Result (*error_name)(Result, const char**);
  Result (*error_text)(Result, const char**);
  Result (*device_count)(int*);
  Result (*device_get)(DeviceNumber*, int ordinal);
  Result (*device_name)(char*, int, DeviceNumber);
  Result (*device_attribute)(int*, DeviceAttribute, DeviceNumber);
  Result (*device_memory)(size_t*, DeviceNumber);  // _v2
  Result (*primary_context_retain)(Context*, DeviceNumber);
  Result (*context_get)(Context*);
  Result (*context_push)(Context);  // _v2
  Result (*context_pop)(Context*);  // _v2
  Result (*context_synchronize)();
  Result (*module_load)(Module*, const void* image);
  Result (*module_unload)(Module);
  Result (*module_function)(Function*, Module, const char*);
  Result (*function_attribute)(int*, FunctionAttribute, Function);
  Result (*function_set_attribute)(Function, FunctionAttribute, int);
  Result (*launch)(const LaunchConfig*, Function, void** parameters, void** extra);  // cuLaunchKernelEx: CUDA 11.8
  Result (*memory_allocate)(DevicePointer*, size_t);                                 // _v2
  Result (*memory_free)(DevicePointer);                                              // _v2
  Result (*memory_info)(size_t* free, size_t* total);                                // _v2
  Result (*host_allocate)(void**, size_t, unsigned flags);
  Result (*host_free)(void*);
  Result (*copy_to_device)(DevicePointer, const void*, size_t, Stream);    // _v2
  Result (*copy_to_host)(void*, DevicePointer, size_t, Stream);            // _v2
  Result (*copy_on_device)(DevicePointer, DevicePointer, size_t, Stream);  // _v2
  Result (*set_bytes)(DevicePointer, unsigned char, size_t, Stream);
  Result (*pointer_attribute)(void*, int attribute, DevicePointer);
  Result (*stream_create)(Stream*, unsigned flags);
  Result (*stream_destroy)(Stream);  // _v2
  Result (*stream_synchronize)(Stream);
  Result (*stream_is_capturing)(Stream, int*);
  Result (*stream_id)(Stream, unsigned long long*);  // CUDA 12.0; may be null
  Result (*exchange_capture_mode)(int*);             // of this thread
  Result (*event_create)(Event*, unsigned flags);
  Result (*event_destroy)(Event);  // _v2
  Result (*event_record)(Event, Stream);
  Result (*event_synchronize)(Event);
  Result (*event_elapsed)(float* milliseconds, Event, Event);
  Result (*tensor_map_encode)(TensorMap*, int type, unsigned rank, void* address, const uint64_t* dims,
                              const uint64_t* strides, const unsigned* box, const unsigned* element_strides,
                              int interleave, int swizzle, int l2_promotion, int oob_fill);  // CUDA 12.0; may be null

  std::string path;  // of the library
  int version = 0;   // 13000: CUDA 13.0
  int devices = 0;

  // LaunchError with the driver's own name and text of the failure, unless `result` is success. `what` is what we
  // wanted: "allocate 4096 bytes on cuda:0".
  void check(Result result, const std::string& what) const {
    if (result != kSuccess) fail_call(result, what);
  }
  // "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
  std::string describe(Result result) const;
  [[noreturn]] void fail_call(Result result, const std::string& what) const;

 private:
  explicit Driver(const LoadedLibrary& library);
};

}  // namespace tilewright::runtime::cuda
