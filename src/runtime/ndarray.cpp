// tilewright::NDArray: memory, shapes and strides. Element access is in ndarray_elements.cpp, DLPack in dlpack.cpp.
#include <sys/mman.h>

#include <cstdlib>

#include "runtime/cuda_array.h"
#include "support/diagnostic.h"
#include "tilewright/tensor.h"

namespace tilewright {
namespace {

constexpr size_t kAlignment = 64;  // a cache line, and the widest vector
// Large arrays lie on pages of 2 MiB where the system gives them: a tile whose rows are pages apart takes an entry of
// the processor's tables for each page of 4 KiB (256 MiB read in rows of 512 bytes, 4 KiB apart: 16.9 ms for 18.4).
constexpr size_t kLargePage = size_t{2} << 20, kLarge = 2 * kLargePage;

std::string text(std::span<const int64_t> values) { return fmt::format("({})", fmt::join(values, ", ")); }

void check_shape(std::span<const int64_t> shape, DType dtype) {
  if (shape.size() > NDArray::max_rank)
    fail(Code::ArrayInvalid, {},
         fmt::format("an array of shape {} has {} dimensions; at most {}", text(shape), shape.size(),
                     NDArray::max_rank));
  int64_t bits = dtype.storage_bits();
  bool overflow = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      fail(Code::ArrayInvalid, {}, fmt::format("an array of shape {} has a negative extent", text(shape)));
    overflow |= __builtin_mul_overflow(bits, std::max<int64_t>(extent, 1), &bits);
  }
  if (overflow)
    fail(Code::ArrayInvalid, {}, fmt::format("an array of shape {} has more elements than 64 bits count", text(shape)));
}

std::shared_ptr<void> allocate(int64_t bytes, std::span<const int64_t> shape) {
  const auto wanted = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  const size_t alignment = wanted < kLarge ? kAlignment : kLargePage;
  void* memory = std::aligned_alloc(alignment, (wanted + alignment - 1) / alignment * alignment);
  if (!memory)
    fail(Code::OutOfMemory, {}, fmt::format("no memory for an array of shape {}, {} bytes", text(shape), bytes));
#ifdef MADV_HUGEPAGE
  if (alignment == kLargePage) madvise(memory, wanted / kLargePage * kLargePage, MADV_HUGEPAGE);  // a wish
#endif
  return {memory, std::free};
}

}  // namespace

std::string Device::name() const {
  switch (type) {
    case 1: return "cpu";
    case 2: return fmt::format("cuda:{}", index);
    case 3: return "cuda_host";
    case 13: return "cuda_managed";
    default: return fmt::format("device type {}, index {}", type, index);
  }
}

NDArray NDArray::empty(std::span<const int64_t> shape, DType dtype, Device device) {
  NDArray array = borrow(nullptr, shape, dtype, {}, 0, {}, device);
  const int64_t bytes = bytes_of(dtype, array.size());
  array.owner_ = device.is_cpu() ? allocate(bytes, shape) : runtime::cuda::allocate_array(device, bytes);
  array.data_ = array.owner_.get();
  return array;
}

NDArray NDArray::zeros(std::span<const int64_t> shape, DType dtype, Device device) {
  NDArray array = empty(shape, dtype, device);
  const int64_t bytes = bytes_of(dtype, array.size());
  if (device.is_cpu())
    std::memset(array.data_, 0, static_cast<size_t>(bytes));
  else
    runtime::cuda::clear_array(device, array.data_, bytes);
  return array;
}

NDArray NDArray::borrow(void* data, std::span<const int64_t> shape, DType dtype, std::span<const int64_t> strides,
                        int64_t byte_offset, std::shared_ptr<void> keep_alive, Device device) {
  check_shape(shape, dtype);
  if (!strides.empty() && strides.size() != shape.size())
    fail(Code::ArrayInvalid, {}, fmt::format("an array of shape {} has strides {}", text(shape), text(strides)));
  NDArray array;
  array.data_ = data ? static_cast<char*>(data) + byte_offset : nullptr;
  array.dtype_ = dtype;
  array.device_ = device;
  array.rank_ = static_cast<int>(shape.size());
  array.owner_ = std::move(keep_alive);
  int64_t step = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    array.shape_[d] = shape[d];
    array.strides_[d] = strides.empty() ? step : strides[d];
    step *= shape[d];
  }
  return array;
}

int64_t NDArray::size() const {
  if (is_null()) return 0;
  int64_t count = 1;
  for (int64_t extent : shape()) count *= extent;
  return count;
}

bool NDArray::is_contiguous() const {
  if (size() == 0) return true;
  int64_t step = 1;
  for (int d = rank() - 1; d >= 0; --d) {
    if (shape(d) != 1 && stride(d) != step) return false;
    step *= shape(d);
  }
  return true;
}

}  // namespace tilewright
