// NDArray: memory with a shape, a dtype and strides, which a call takes as its argument. (The DSL's word Tensor is a
// parameter's type.)
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tilewright/dtype.h"

// Declared, not defined: layouts of DLPack 1.x, so that dlpack.h may be included beside this file.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace tilewright {

// Where memory lives; the numbers are DLPack's (1 cpu, 2 cuda, 3 cuda_host, ...).
struct Device {
  int32_t type = 1;
  int32_t index = 0;
  bool is_cpu() const { return type == 1; }
  std::string name() const;  // "cpu", "cuda:0"
  bool operator==(const Device&) const = default;
};

// A handle: copies share the elements, clone() does not. Shapes and strides count elements; a stride may be 0 or
// negative. 4-bit elements are packed two to a byte: element offset 2i is the low nibble of byte i.
class NDArray {
 public:
  static constexpr int max_rank = 8;

  NDArray() = default;  // null: what a nullable parameter may be given
  // Row-major memory of our own, aligned to 64 bytes: the processor's, or that of a CUDA device {2, index}.
  static NDArray zeros(std::span<const int64_t> shape, DType dtype, Device device = {});
  static NDArray zeros(std::initializer_list<int64_t> shape, DType dtype, Device device = {}) {
    return zeros(as_span(shape), dtype, device);
  }
  static NDArray empty(std::span<const int64_t> shape, DType dtype, Device device = {});
  static NDArray empty(std::initializer_list<int64_t> shape, DType dtype, Device device = {}) {
    return empty(as_span(shape), dtype, device);
  }
  // Memory of somebody else, which must outlive the array and its copies unless `keep_alive` owns it. Without strides:
  // row-major.
  static NDArray borrow(void* data, std::span<const int64_t> shape, DType dtype, std::span<const int64_t> strides = {},
                        int64_t byte_offset = 0, std::shared_ptr<void> keep_alive = {}, Device device = {});
  static NDArray borrow(void* data, std::initializer_list<int64_t> shape, DType dtype,
                        std::initializer_list<int64_t> strides = {}) {
    return borrow(data, as_span(shape), dtype, as_span(strides));
  }
  // Takes over the tensor: its deleter runs with the last copy. LaunchError, and nothing taken, if it cannot be
  // described here.
  static NDArray from_dlpack(DLManagedTensor* tensor);
  static NDArray from_dlpack(DLManagedTensorVersioned* tensor);
  // The receiver calls the deleter; until then the memory stays.
  DLManagedTensor* to_dlpack() const;
  DLManagedTensorVersioned* to_dlpack_versioned() const;

  bool is_null() const { return rank_ < 0; }
  void* data() const { return data_; }  // of element (0, ..., 0)
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  int rank() const { return rank_ < 0 ? 0 : rank_; }
  std::span<const int64_t> shape() const { return {shape_.data(), static_cast<size_t>(rank())}; }
  std::span<const int64_t> strides() const { return {strides_.data(), static_cast<size_t>(rank())}; }
  int64_t shape(int dim) const { return shape_[static_cast<size_t>(dim)]; }
  int64_t stride(int dim) const { return strides_[static_cast<size_t>(dim)]; }
  int64_t size() const;        // number of elements
  bool is_contiguous() const;  // row-major without gaps; strides of dimensions of extent 1 do not matter
  NDArray clone() const;       // row-major copy in the same memory
  // Row-major copy on another device (or this array, where it is there already). Ordered after what is on the stream of
  // the calling thread (cuda.h), and finished on return.
  NDArray to(Device device) const;

  // Element access by value, for tests and small things, in memory that the processor reaches; indices are checked.
  // Values are converted as the language converts.
  double get_float(std::initializer_list<int64_t> index) const { return get_float(as_span(index)); }
  double get_float(std::span<const int64_t> index) const;
  int64_t get_int(std::initializer_list<int64_t> index) const { return get_int(as_span(index)); }
  int64_t get_int(std::span<const int64_t> index) const;
  void set_float(std::initializer_list<int64_t> index, double value) const { set_float(as_span(index), value); }
  void set_float(std::span<const int64_t> index, double value) const;
  void set_int(std::initializer_list<int64_t> index, int64_t value) const { set_int(as_span(index), value); }
  void set_int(std::span<const int64_t> index, int64_t value) const;
  // All elements in row-major order of their indices.
  std::vector<double> to_floats() const;
  std::vector<int64_t> to_ints() const;
  void assign_floats(std::span<const double> values) const;
  void assign_ints(std::span<const int64_t> values) const;

 private:
  static std::span<const int64_t> as_span(std::initializer_list<int64_t> list) { return {list.begin(), list.size()}; }
  int64_t element_offset(std::span<const int64_t> index) const;

  void* data_ = nullptr;
  DType dtype_;
  Device device_;
  int rank_ = -1;
  std::array<int64_t, max_rank> shape_{};
  std::array<int64_t, max_rank> strides_{};
  std::shared_ptr<void> owner_;
};

}  // namespace tilewright
