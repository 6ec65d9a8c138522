// Inputs, decoding and sampling for the examples.
#include "example.h"

#include <cstring>
#include <limits>
#include <numbers>
#include <numeric>
#include <stdexcept>

namespace examples {
namespace {

uint64_t mix(uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

struct FloatFormat {
  int exponent_bits, mantissa_bits;
  bool infinities;    // the largest exponent holds infinities and NaN
  bool nan_all_ones;  // else: only all ones is NaN
};

FloatFormat format_of(DType t) {
  if (t == tilewright::f16) return {5, 10, true, false};
  if (t == tilewright::bf16) return {8, 7, true, false};
  if (t == tilewright::e4m3) return {4, 3, false, true};
  if (t == tilewright::e5m2) return {5, 2, true, false};
  if (t == tilewright::e2m1) return {2, 1, false, false};
  throw std::invalid_argument("the examples do not decode " + t.name());
}

double decode_bits(uint32_t bits, const FloatFormat& f) {
  const uint32_t mantissa = bits & ((1u << f.mantissa_bits) - 1);
  const int exponent = static_cast<int>(bits >> f.mantissa_bits) & ((1 << f.exponent_bits) - 1);
  const int largest = (1 << f.exponent_bits) - 1, bias = (1 << (f.exponent_bits - 1)) - 1;
  const double sign = (bits >> (f.exponent_bits + f.mantissa_bits)) & 1 ? -1 : 1;
  if (f.infinities && exponent == largest) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (f.nan_all_ones && exponent == largest && mantissa == (1u << f.mantissa_bits) - 1) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double fraction = std::ldexp(mantissa, -f.mantissa_bits);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - bias) : sign * std::ldexp(1 + fraction, exponent - bias);
}

template <class T>
double plain(const void* data, int64_t i) {
  return static_cast<double>(static_cast<const T*>(data)[i]);
}

using Decoder = double (*)(const void*, int64_t);

Decoder plain_decoder(DType t) {
  using namespace tilewright;
  if (t == f32 || t == tf32) return plain<float>;
  if (t == f64) return plain<double>;
  if (t == i8) return plain<int8_t>;
  if (t == u8 || t.is_bool()) return plain<uint8_t>;
  if (t == i16) return plain<int16_t>;
  if (t == u16) return plain<uint16_t>;
  if (t == i32) return plain<int32_t>;
  if (t == u32) return plain<uint32_t>;
  if (t == i64) return plain<int64_t>;
  if (t == u64) return plain<uint64_t>;
  return nullptr;
}

int nibble(const void* data, int64_t i) { return static_cast<const uint8_t*>(data)[i / 2] >> (i % 2 * 4) & 15; }

Decoder decoder_of(DType t) {
  using namespace tilewright;
  if (Decoder d = plain_decoder(t)) return d;
  if (t == f16)
    return [](const void* p, int64_t i) {
      return decode_bits(static_cast<const uint16_t*>(p)[i], {5, 10, true, false});
    };
  if (t == bf16) {
    return [](const void* p, int64_t i) {
      const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(p)[i]) << 16;
      float value;
      std::memcpy(&value, &bits, sizeof value);
      return static_cast<double>(value);
    };
  }
  if (t == e4m3)
    return [](const void* p, int64_t i) { return decode_bits(static_cast<const uint8_t*>(p)[i], {4, 3, false, true}); };
  if (t == e5m2)
    return [](const void* p, int64_t i) { return decode_bits(static_cast<const uint8_t*>(p)[i], {5, 2, true, false}); };
  if (t == e8m0) {
    return [](const void* p, int64_t i) {
      const int bits = static_cast<const uint8_t*>(p)[i];
      return bits == 255 ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, bits - 127);
    };
  }
  if (t == e2m1)
    return [](const void* p, int64_t i) {
      return decode_bits(static_cast<uint32_t>(nibble(p, i)), {2, 1, false, false});
    };
  if (t == u4) return [](const void* p, int64_t i) { return static_cast<double>(nibble(p, i)); };
  if (t == i4) return [](const void* p, int64_t i) { return static_cast<double>((nibble(p, i) ^ 8) - 8); };
  throw std::invalid_argument("the examples do not decode " + t.name());
}

}  // namespace

void Check::report(double actual, double expected, double bound, const std::string& at) {
  char text[160];
  std::snprintf(text, sizeof text, " = %.9g, expected %.9g within %.3g", actual, expected, bound);
  first_bad_ = at + text;
}

NDArray LazyArray::make() const {
  NDArray array = NDArray::zeros(shape_, dtype_);
  fill_(array);
  return array;
}

int64_t LazyArray::size() const {
  return std::accumulate(shape_.begin(), shape_.end(), int64_t{1}, std::multiplies<>());
}

void for_each_part(int64_t total, const std::function<void(int64_t begin, int64_t end)>& work) {
  constexpr int64_t part = 1 << 16;
#pragma omp parallel for schedule(static) if (total > part)
  for (int64_t begin = 0; begin < total; begin += part) work(begin, std::min(total, begin + part));
}

namespace {

// Larger arrays repeat their first elements: to draw billions of numbers takes minutes. The period is a prime, so no
// two rows or tiles are alike, and larger than all arrays but those of GPUs' shapes.
constexpr int64_t kPeriod = (int64_t{1} << 24) + 43;

template <class Draw>
void fill_with(const NDArray& array, const Draw& draw) {
  const DType dtype = array.dtype();
  char* const data = static_cast<char*>(array.data());
  const int64_t size = array.size(), drawn = dtype.is_packed() ? size : std::min(size, kPeriod);
  for_each_part(drawn, [&](int64_t begin, int64_t end) {
    const NDArray part = NDArray::borrow(data + begin * dtype.storage_bits() / 8, {end - begin}, dtype);
    if (dtype.is_integral()) {
      std::vector<int64_t> values;
      for (int64_t i = begin; i < end; ++i) values.push_back(static_cast<int64_t>(std::floor(draw(i))));
      part.assign_ints(values);
    } else {
      std::vector<double> values;
      for (int64_t i = begin; i < end; ++i) values.push_back(draw(i));
      part.assign_floats(values);
    }
  });
#pragma omp parallel for schedule(static) if (size > drawn)
  for (int64_t at = drawn; at < size; at += kPeriod) {
    const int64_t bytes = dtype.storage_bits() / 8;
    std::memcpy(data + at * bytes, data, static_cast<size_t>(std::min(kPeriod, size - at) * bytes));
  }
}

// In [0, 1).
double uniform(uint64_t seed, int64_t i) {
  return std::ldexp(static_cast<double>(mix(seed << 40 ^ static_cast<uint64_t>(i)) >> 11), -53);
}

}  // namespace

LazyArray random_array(std::initializer_list<int64_t> shape, DType dtype, uint64_t seed, double low, double high) {
  return {shape, dtype, [=](const NDArray& array) {
            fill_with(array, [=](int64_t i) { return low + (high - low) * uniform(seed, i); });
          }};
}

// Normal by Box and Muller's method, one number of the two.
LazyArray input_array(std::initializer_list<int64_t> shape, DType dtype, uint64_t seed, Data data) {
  if (data == Data::Uniform) return random_array(shape, dtype, seed);
  return {shape, dtype, [=](const NDArray& array) {
            fill_with(array, [=](int64_t i) {
              const double radius = std::sqrt(-2 * std::log(1 - uniform(seed, 2 * i)));
              return radius * std::cos(2 * std::numbers::pi * uniform(seed, 2 * i + 1));
            });
          }};
}

LazyArray output_array(std::initializer_list<int64_t> shape, DType dtype) {
  return {shape, dtype, [dtype](const NDArray& array) {
            std::memset(array.data(), dtype.is_float() ? 0xff : 0x5a,
                        static_cast<size_t>((array.size() * dtype.storage_bits() + 7) / 8));
          }};
}

Elements::Elements(const NDArray& array)
    : decode_(decoder_of(array.dtype())), data_(array.data()), size_(array.size()), keeps_(array) {
  if (!array.is_contiguous()) throw std::invalid_argument("Elements reads row-major arrays");
}

std::vector<int64_t> sample(int64_t total, int64_t max_elements) {
  std::vector<int64_t> out;
  if (total <= max_elements) {
    out.resize(static_cast<size_t>(total));
    std::iota(out.begin(), out.end(), int64_t{0});
    return out;
  }
  // One in each of max_elements equal stretches: every region is seen, no residue is preferred.
  for (int64_t s = 0; s < max_elements; ++s) {
    const int64_t begin = total / max_elements * s, length = total / max_elements;
    out.push_back(begin + static_cast<int64_t>(mix(static_cast<uint64_t>(s)) % static_cast<uint64_t>(length)));
  }
  out.front() = 0;
  out.back() = total - 1;
  return out;
}

std::string element_name(const std::string& array, std::initializer_list<int64_t> shape, int64_t position) {
  std::string text;
  for (auto extent = std::rbegin(shape); extent != std::rend(shape); ++extent) {
    text = std::to_string(position % *extent) + (text.empty() ? "" : ", ") + text;
    position /= *extent;
  }
  return array + "[" + text + "]";
}

double unit_roundoff(DType t) {
  if (t == tilewright::f32) return std::ldexp(1, -24);
  if (t == tilewright::f64) return std::ldexp(1, -53);
  return std::ldexp(1, -1 - format_of(t).mantissa_bits);
}

double rounding_error(DType t, double value) {
  if (t.is_integral()) return 0.5;
  const double denormal = t == tilewright::f32 ? std::ldexp(1, -150)
                          : t == tilewright::f64
                              ? std::ldexp(1, -1075)
                              : std::ldexp(1, 1 - (1 << (format_of(t).exponent_bits - 1)) - format_of(t).mantissa_bits);
  return std::max(std::abs(value) * unit_roundoff(t), denormal);
}

std::vector<NDArray> make_arrays(const Case& c) {
  std::vector<NDArray> arrays;
  for (const CaseArgument& a : c.arguments)
    if (const LazyArray* array = std::get_if<LazyArray>(&a)) arrays.push_back(array->make());
  return arrays;
}

std::vector<NDArray> run_case(const Case& c, const tilewright::Executable& executable) {
  std::vector<NDArray> arrays = make_arrays(c);
  call_case(c, executable, arrays);
  return arrays;
}

void call_case(const Case& c, const tilewright::Executable& executable, const std::vector<NDArray>& arrays) {
  std::vector<tilewright::Argument> list;
  auto next = arrays.begin();
  for (const CaseArgument& a : c.arguments) {
    if (std::holds_alternative<LazyArray>(a)) {
      list.emplace_back(*next++);
    } else if (const int64_t* integer = std::get_if<int64_t>(&a)) {
      list.emplace_back(*integer);
    } else {
      list.emplace_back(std::get<double>(a));
    }
  }
  executable.call(list);
}

}  // namespace examples
