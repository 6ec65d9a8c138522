// Element access of NDArray: index arithmetic here, the meaning of bits from src/scalar.
#include "runtime/cuda_array.h"
#include "scalar/evaluate.h"
#include "support/diagnostic.h"
#include "tilewright/tensor.h"

namespace tilewright {
namespace {

constexpr size_t kChunk = 1024;  // elements converted at a time; bounds the scratch on the stack

// A pointer is read and written as the number it is.
DType value_type(DType type) { return type.is_pointer() ? u64 : type; }

// The element with the smallest address, and offsets counted from there: lane loads take no negative offsets.
struct Base {
  char* address;
  int64_t lowest;
};

Base base_of(const NDArray& array) {
  if (array.device().type == 2)  // DLPack's kDLCUDA
    fail(Code::ArrayInvalid, {},
         fmt::format("the elements of an array on {} cannot be read here", array.device().name()),
         "copy it first: to({1, 0})");
  int64_t lowest = 0;
  for (int d = 0; d < array.rank(); ++d)
    if (array.stride(d) < 0) lowest += (array.shape(d) - 1) * array.stride(d);
  if (array.dtype().is_packed()) lowest -= lowest & 1;  // the base is a whole byte
  return {static_cast<char*>(array.data()) + lowest * array.dtype().storage_bits() / 8, lowest};
}

template <class T>
constexpr DType plain = std::is_same_v<T, double> ? f64 : i64;

template <class T>
void load(const NDArray& array, const Base& base, std::span<int64_t> offsets, T* out) {
  std::array<int64_t, kChunk> lanes;  // int64, double or float
  const int64_t count = static_cast<int64_t>(offsets.size());
  load_lanes(array.dtype(), base.address, {offsets.data(), 0}, count, lanes.data());
  convert(value_type(array.dtype()), plain<T>, Rounding::Nearest, lanes.data(), nullptr, out, count);
}

template <class T>
void store(const NDArray& array, const Base& base, std::span<int64_t> offsets, const T* in) {
  std::array<int64_t, kChunk> lanes;
  const int64_t count = static_cast<int64_t>(offsets.size());
  convert(plain<T>, value_type(array.dtype()), Rounding::Nearest, in, nullptr, lanes.data(), count);
  store_lanes(array.dtype(), base.address, {offsets.data(), 0}, count, lanes.data());
}

// Calls act(offsets, first) for all elements in row-major order of their indices, a chunk at a time.
template <class Act>
void each_chunk(const NDArray& array, const Base& base, Act&& act) {
  std::array<int64_t, NDArray::max_rank> index{};
  std::array<int64_t, kChunk> offsets;
  const int64_t size = array.size();
  int64_t offset = -base.lowest;
  for (int64_t first = 0; first < size;) {
    size_t count = 0;
    for (; count < kChunk && first + static_cast<int64_t>(count) < size; ++count) {
      offsets[count] = offset;
      for (int d = array.rank() - 1; d >= 0; --d) {
        int64_t& at = index[static_cast<size_t>(d)];
        offset += array.stride(d);
        if (++at < array.shape(d)) break;
        offset -= array.stride(d) * at;
        at = 0;
      }
    }
    act(std::span(offsets.data(), count), static_cast<size_t>(first));
    first += static_cast<int64_t>(count);
  }
}

template <class T>
std::vector<T> to_vector(const NDArray& array) {
  std::vector<T> values(static_cast<size_t>(array.size()));
  const Base base = base_of(array);
  each_chunk(array, base,
             [&](std::span<int64_t> offsets, size_t first) { load(array, base, offsets, &values[first]); });
  return values;
}

template <class T>
void assign(const NDArray& array, std::span<const T> values) {
  if (values.size() != static_cast<size_t>(array.size()))
    fail(Code::ArrayInvalid, {},
         fmt::format("{} values for an array of shape ({})", values.size(), fmt::join(array.shape(), ", ")));
  const Base base = base_of(array);
  each_chunk(array, base,
             [&](std::span<int64_t> offsets, size_t first) { store(array, base, offsets, &values[first]); });
}

template <class T>
T load_one(const NDArray& array, int64_t offset) {
  const Base base = base_of(array);
  T value;
  offset -= base.lowest;
  load(array, base, {&offset, 1}, &value);
  return value;
}

template <class T>
void store_one(const NDArray& array, int64_t offset, T value) {
  const Base base = base_of(array);
  offset -= base.lowest;
  store(array, base, {&offset, 1}, &value);
}

}  // namespace

int64_t NDArray::element_offset(std::span<const int64_t> index) const {
  bool inside = !is_null() && index.size() == shape().size();
  int64_t offset = 0;
  for (size_t d = 0; inside && d < index.size(); ++d) {
    inside = index[d] >= 0 && index[d] < shape_[d];
    offset += index[d] * strides_[d];
  }
  if (!inside)
    fail(Code::ArrayInvalid, {},
         fmt::format("no element ({}) in an array of shape ({})", fmt::join(index, ", "), fmt::join(shape(), ", ")));
  return offset;
}

double NDArray::get_float(std::span<const int64_t> index) const {
  return load_one<double>(*this, element_offset(index));
}
int64_t NDArray::get_int(std::span<const int64_t> index) const {
  return load_one<int64_t>(*this, element_offset(index));
}
void NDArray::set_float(std::span<const int64_t> index, double value) const {
  store_one(*this, element_offset(index), value);
}
void NDArray::set_int(std::span<const int64_t> index, int64_t value) const {
  store_one(*this, element_offset(index), value);
}

std::vector<double> NDArray::to_floats() const { return to_vector<double>(*this); }
std::vector<int64_t> NDArray::to_ints() const { return to_vector<int64_t>(*this); }
void NDArray::assign_floats(std::span<const double> values) const { assign(*this, values); }
void NDArray::assign_ints(std::span<const int64_t> values) const { assign(*this, values); }

NDArray NDArray::clone() const {
  if (is_null()) return {};
  if (device_.type == 2) return runtime::cuda::clone_array(*this);
  const NDArray copy = empty(shape(), dtype_);
  if (dtype_.is_packed() && size() % 2 != 0)  // the half byte that no element fills
    static_cast<char*>(copy.data_)[size() / 2] = 0;
  std::array<int64_t, kChunk> lanes;
  const Base base = base_of(*this);
  each_chunk(*this, base, [&](std::span<int64_t> offsets, size_t first) {
    const int64_t count = static_cast<int64_t>(offsets.size());
    // Lanes hold every value of every type, but not every bit pattern: a NaN keeps its bits only as an integer.
    const DType bits{Kind::UInt, static_cast<uint8_t>(dtype_.storage_bits())};
    load_lanes(bits, base.address, {offsets.data(), 0}, count, lanes.data());
    store_lanes(bits, copy.data_, {nullptr, static_cast<int64_t>(first)}, count, lanes.data());
  });
  return copy;
}

}  // namespace tilewright
