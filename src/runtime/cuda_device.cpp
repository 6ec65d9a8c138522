#include "runtime/cuda_device.h"

#include <map>
#include <mutex>

#include "support/diagnostic.h"

namespace tilewright::runtime::cuda {
namespace {

thread_local Stream t_stream = nullptr;

DeviceProperties properties_of(const Driver& d, DeviceNumber device, int index) {
  DeviceProperties p;
  const auto get = [&](DeviceAttribute attribute) {
    int value = 0;
    d.check(d.device_attribute(&value, attribute, device),
            fmt::format("read attribute {} of cuda:{}", static_cast<int>(attribute), index));
    return value;
  };
  // Attributes that drivers stopped reporting or do not know yet are 0.
  const auto get_if_known = [&](DeviceAttribute attribute) {
    int value = 0;
    return d.device_attribute(&value, attribute, device) == kSuccess ? value : 0;
  };
  char name[256] = {};
  size_t bytes = 0;
  d.check(d.device_name(name, sizeof name - 1, device), fmt::format("read the name of cuda:{}", index));
  d.check(d.device_memory(&bytes, device), fmt::format("read the memory size of cuda:{}", index));
  p.name = name, p.memory_bytes = static_cast<int64_t>(bytes);
  p.compute_major = get(DeviceAttribute::ComputeMajor), p.compute_minor = get(DeviceAttribute::ComputeMinor);
  p.sm_count = get(DeviceAttribute::SmCount);
  p.max_threads_per_block = get(DeviceAttribute::MaxThreadsPerBlock);
  p.max_threads_per_sm = get(DeviceAttribute::MaxThreadsPerSm);
  p.registers_per_sm = get(DeviceAttribute::RegistersPerSm);
  p.shared_bytes_per_block = get(DeviceAttribute::SharedBytesPerBlockOptIn);
  p.shared_bytes_per_sm = get(DeviceAttribute::SharedBytesPerSm);
  p.l2_bytes = get(DeviceAttribute::L2Bytes);
  p.clock_megahertz = get_if_known(DeviceAttribute::ClockKilohertz) / 1000;
  p.memory_clock_megahertz = get_if_known(DeviceAttribute::MemoryClockKilohertz) / 1000;
  p.memory_bus_bits = get_if_known(DeviceAttribute::MemoryBusBits);
  p.cooperative = get_if_known(DeviceAttribute::CooperativeLaunch) != 0;
  p.clusters = get_if_known(DeviceAttribute::ClusterLaunch) != 0;
  p.tensor_maps = get_if_known(DeviceAttribute::TensorMaps) != 0;
  return p;
}

const CudaDevice* open_device(const Driver& d, int index) {
  if (index < 0 || index >= d.devices)
    fail(Code::CudaDeviceMissing, {},
         fmt::format("there is no cuda:{}: the driver has {} device{}", index, d.devices, d.devices == 1 ? "" : "s"));
  DeviceNumber number = 0;
  Context context = nullptr;
  d.check(d.device_get(&number, index), fmt::format("open cuda:{}", index));
  DeviceProperties properties = properties_of(d, number, index);
  d.check(d.primary_context_retain(&context, number), fmt::format("retain the primary context of cuda:{}", index));
  return new CudaDevice{d, index, context, std::move(properties)};
}

}  // namespace

std::string DeviceProperties::arch() const {
  return fmt::format("sm_{}{}{}", compute_major, compute_minor, compute_major >= 9 ? "a" : "");
}

const CudaDevice& CudaDevice::get(int index) {
  static std::mutex mutex;
  static auto* const found = new std::map<std::pair<const Driver*, int>, const CudaDevice*>;  // live to the end
  const Driver& driver = Driver::get();
  std::lock_guard lock(mutex);
  const CudaDevice*& device = (*found)[{&driver, index}];
  if (!device) device = open_device(driver, index);
  return *device;
}

int device_count() {
  try {
    return Driver::get().devices;
  } catch (const LaunchError&) {
    return 0;
  }
}

ScopedDevice::ScopedDevice(const CudaDevice& device) : driver_(device.driver) {
  Context current = nullptr;
  driver_.context_get(&current);
  if (current == device.context) return;
  driver_.check(driver_.context_push(device.context), fmt::format("make the context of cuda:{} current", device.index));
  pushed_ = true;
}

ScopedDevice::~ScopedDevice() {
  Context ours = nullptr;
  if (pushed_) driver_.context_pop(&ours);
}

Stream current_stream() { return t_stream; }
void set_current_stream(Stream stream) { t_stream = stream; }

std::shared_ptr<void> allocate(const CudaDevice& device, int64_t bytes) {
  const ScopedDevice scope(device);
  DevicePointer address = 0;
  device.driver.check(device.driver.memory_allocate(&address, static_cast<size_t>(std::max<int64_t>(bytes, 1))),
                      fmt::format("allocate {} bytes on cuda:{}", bytes, device.index));
  return {reinterpret_cast<void*>(address), [&device](void* memory) {
            Context current = nullptr;
            device.driver.context_get(&current);
            const bool other = current != device.context && device.driver.context_push(device.context) == kSuccess;
            device.driver.memory_free(reinterpret_cast<DevicePointer>(memory));
            if (other) device.driver.context_pop(&current);
          }};
}

std::shared_ptr<void> allocate_pinned(const CudaDevice& device, int64_t bytes) {
  const ScopedDevice scope(device);
  void* memory = nullptr;
  constexpr unsigned kPortable = 1, kMapped = 2;  // CU_MEMHOSTALLOC_PORTABLE, _DEVICEMAP
  device.driver.check(
      device.driver.host_allocate(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)), kPortable | kMapped),
      fmt::format("allocate {} bytes of pinned memory", bytes));
  return {memory, [&driver = device.driver](void* pinned) { driver.host_free(pinned); }};
}

int device_of(const CudaDevice& device, const void* address) {
  const Driver& d = device.driver;
  const ScopedDevice scope(device);
  unsigned type = 0;
  int ordinal = -1;
  const DevicePointer at = reinterpret_cast<DevicePointer>(address);
  // Memory that the driver never saw is an invalid value.
  if (d.pointer_attribute(&type, kPointerMemoryType, at) != kSuccess || type == kMemoryHost) return -1;
  return d.pointer_attribute(&ordinal, kPointerDeviceOrdinal, at) == kSuccess ? ordinal : -1;
}

Timer::Timer(const CudaDevice& device) : device_(device) {
  const ScopedDevice scope(device_);
  for (Event* event : {&begin_, &end_}) device_.driver.check(device_.driver.event_create(event, 0), "create an event");
}

Timer::~Timer() {
  for (Event event : {begin_, end_})
    if (event) device_.driver.event_destroy(event);
}

void Timer::start(Stream stream) {
  const ScopedDevice scope(device_);
  device_.driver.check(device_.driver.event_record(begin_, stream), "record an event");
}

void Timer::stop(Stream stream) {
  const ScopedDevice scope(device_);
  device_.driver.check(device_.driver.event_record(end_, stream), "record an event");
}

float Timer::milliseconds() {
  const ScopedDevice scope(device_);
  float time = 0;
  device_.driver.check(device_.driver.event_synchronize(end_), "wait for an event");
  device_.driver.check(device_.driver.event_elapsed(&time, begin_, end_), "read the time between two events");
  return time;
}

}  // namespace tilewright::runtime::cuda
