// Arrays on CUDA devices, and the functions of tilewright/cuda.h.
#include "runtime/cuda_array.h"

#include "runtime/cuda_device.h"
#include "support/diagnostic.h"
#include "tilewright/cuda.h"

namespace tilewright {
namespace runtime::cuda {
namespace {

constexpr int32_t kDlCuda = 2;  // DLDeviceType

DevicePointer address_of(const void* memory) { return reinterpret_cast<DevicePointer>(memory); }

void wait(const CudaDevice& device, Stream stream) {
  device.driver.check(device.driver.stream_synchronize(stream), fmt::format("wait for cuda:{}", device.index));
}

}  // namespace

std::shared_ptr<void> allocate_array(const Device& device, int64_t bytes) {
  if (device.type != kDlCuda)
    fail(Code::ArrayInvalid, {}, fmt::format("no array can be made on {}", device.name()),
         "arrays are made on the cpu, {1, 0}, and on CUDA devices, {2, index}");
  return allocate(CudaDevice::get(device.index), bytes);
}

void clear_array(const Device& device, void* memory, int64_t bytes) {
  const CudaDevice& d = CudaDevice::get(device.index);
  const ScopedDevice scope(d);
  d.driver.check(d.driver.set_bytes(address_of(memory), 0, static_cast<size_t>(bytes), current_stream()),
                 fmt::format("clear {} bytes on cuda:{}", bytes, device.index));
  wait(d, current_stream());
}

namespace {

// The memory from the first to the last element, in host memory with the same strides.
NDArray span_on_host(const NDArray& array) {
  int64_t lowest = 0, highest = 0;
  for (int d = 0; d < array.rank(); ++d) {
    const int64_t reach = (array.shape(d) - 1) * array.stride(d);
    (reach < 0 ? lowest : highest) += reach;
  }
  if (array.dtype().is_packed()) lowest -= lowest & 1;  // begins with a whole byte
  const int64_t before = -lowest * array.dtype().storage_bits() / 8;
  const NDArray bytes = NDArray::empty({bytes_of(array.dtype(), highest - lowest + 1)}, u8);
  const CudaDevice& d = CudaDevice::get(array.device().index);
  const ScopedDevice scope(d);
  const char* first = static_cast<const char*>(array.data()) - before;
  d.driver.check(
      d.driver.copy_to_host(bytes.data(), address_of(first), static_cast<size_t>(bytes.size()), current_stream()),
      fmt::format("copy {} bytes from cuda:{}", bytes.size(), d.index));
  wait(d, current_stream());
  return NDArray::borrow(bytes.data(), array.shape(), array.dtype(), array.strides(), before,
                         std::make_shared<NDArray>(bytes));
}

NDArray from_device(const NDArray& array) {
  if (array.size() == 0) return NDArray::empty(array.shape(), array.dtype());
  const NDArray span = span_on_host(array);
  return span.is_contiguous() ? span : span.clone();
}

NDArray to_device(const NDArray& array, Device device) {
  const NDArray dense = array.is_contiguous() ? array : array.clone();
  const NDArray out = NDArray::empty(array.shape(), array.dtype(), device);
  if (array.size() == 0) return out;
  const CudaDevice& d = CudaDevice::get(device.index);
  const ScopedDevice scope(d);
  const int64_t bytes = bytes_of(array.dtype(), array.size());
  d.driver.check(
      d.driver.copy_to_device(address_of(out.data()), dense.data(), static_cast<size_t>(bytes), current_stream()),
      fmt::format("copy {} bytes to cuda:{}", bytes, device.index));
  wait(d, current_stream());
  return out;
}

NDArray copy_on_device(const NDArray& array) {
  const NDArray out = NDArray::empty(array.shape(), array.dtype(), array.device());
  const CudaDevice& d = CudaDevice::get(array.device().index);
  const ScopedDevice scope(d);
  const int64_t bytes = bytes_of(array.dtype(), array.size());
  d.driver.check(d.driver.copy_on_device(address_of(out.data()), address_of(array.data()), static_cast<size_t>(bytes),
                                         current_stream()),
                 fmt::format("copy {} bytes on cuda:{}", bytes, d.index));
  wait(d, current_stream());
  return out;
}

}  // namespace

NDArray clone_array(const NDArray& array) {
  if (array.size() != 0 && array.is_contiguous()) return copy_on_device(array);
  return to_device(from_device(array), array.device());
}

NDArray copy_array(const NDArray& array, Device device) {
  const bool from_cuda = array.device().type == kDlCuda;
  if (device.type == kDlCuda) return to_device(from_cuda ? from_device(array) : array, device);
  if (!device.is_cpu())
    fail(Code::ArrayInvalid, {}, fmt::format("no array can be copied to {}", device.name()),
         "arrays are copied to the cpu, {1, 0}, and to CUDA devices, {2, index}");
  return from_cuda ? from_device(array) : array.clone();
}

}  // namespace runtime::cuda

NDArray NDArray::to(Device device) const {
  if (is_null() || device == device_) return *this;
  return runtime::cuda::copy_array(*this, device);
}

namespace cuda {

namespace rt = runtime::cuda;

int device_count() { return rt::device_count(); }
std::string architecture(int device) { return rt::CudaDevice::get(device).properties.arch(); }
void set_stream(void* stream) { rt::set_current_stream(static_cast<rt::Stream>(stream)); }
void* stream() { return rt::current_stream(); }

void synchronize(int device) {
  const rt::CudaDevice& d = rt::CudaDevice::get(device);
  const rt::ScopedDevice scope(d);
  d.driver.check(d.driver.context_synchronize(), fmt::format("wait for cuda:{}", device));
}

NDArray borrow(void* data, std::span<const int64_t> shape, DType dtype, std::span<const int64_t> strides,
               std::shared_ptr<void> keep_alive) {
  const int device = rt::device_of(rt::CudaDevice::get(0), data);
  if (device < 0 && data != nullptr)
    fail(Code::PointerNotOnDevice, {}, fmt::format("the address {} belongs to no CUDA device", fmt::ptr(data)),
         "it may be the host's: NDArray::borrow() takes those, and to({2, 0}) copies them to a device");
  return NDArray::borrow(data, shape, dtype, strides, 0, std::move(keep_alive), {rt::kDlCuda, std::max(device, 0)});
}

}  // namespace cuda
}  // namespace tilewright
