// load_lanes and store_lanes: between lane arrays and the bits of tensors.
#include "scalar/evaluate.h"
#include "scalar/text.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

template <auto f, class Bits, class Lane>
void load_each(const void* base, Elements elements, int64_t n, Lane* out) {
  const auto* bits = static_cast<const Bits*>(base);
  if (elements.offsets == nullptr) {
    bits += elements.first;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<Lane>(f(bits[i]));
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    if (elements.offsets[i] >= 0) out[i] = static_cast<Lane>(f(bits[elements.offsets[i]]));
}

template <auto f, class Bits, class Lane>
void store_each(void* base, Elements elements, int64_t n, const Lane* in) {
  auto* bits = static_cast<Bits*>(base);
  if (elements.offsets == nullptr) {
    bits += elements.first;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) bits[i] = static_cast<Bits>(f(in[i]));
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    if (elements.offsets[i] >= 0) bits[elements.offsets[i]] = static_cast<Bits>(f(in[i]));
}

template <class T>
[[gnu::always_inline]] inline T same(T x) {
  return x;
}
inline uint8_t truth(uint8_t x) { return x != 0; }
inline uint8_t truth_bits(int64_t x) { return x != 0; }

template <class Bits>
[[gnu::always_inline]] inline Bits low_bits(int64_t x) {
  return static_cast<Bits>(x);
}

// Two elements a byte, the even index in the low nibble.
uint8_t nibble(const uint8_t* bytes, int64_t at) { return bytes[at >> 1] >> (4 * (at & 1)) & 15; }

void set_nibble(uint8_t* bytes, int64_t at, uint8_t value) {
  const int shift = 4 * static_cast<int>(at & 1);
  bytes[at >> 1] = static_cast<uint8_t>((bytes[at >> 1] & ~(15 << shift)) | (value & 15) << shift);
}

template <class Lane, class F>
void load_packed(const void* base, Elements elements, int64_t n, Lane* out, F value_of) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = elements.offsets ? elements.offsets[i] : elements.first + i;
    if (at >= 0) out[i] = static_cast<Lane>(value_of(nibble(static_cast<const uint8_t*>(base), at)));
  }
}

template <class Lane, class F>
void store_packed(void* base, Elements elements, int64_t n, const Lane* in, F bits_of) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = elements.offsets ? elements.offsets[i] : elements.first + i;
    if (at >= 0) set_nibble(static_cast<uint8_t*>(base), at, static_cast<uint8_t>(bits_of(in[i])));
  }
}

void load_integers(DType type, const void* base, Elements elements, int64_t n, int64_t* out) {
  if (type.is_bool()) return load_each<truth, uint8_t>(base, elements, n, out);
  if (type == i4) return load_packed(base, elements, n, out, [](uint8_t x) { return scalar::wrap_i4(x); });
  if (type == u4) return load_packed(base, elements, n, out, [](uint8_t x) { return x; });
  const bool is_signed = type.is_signed();
  switch (type.bits) {
    case 8:
      return is_signed ? load_each<same<int8_t>, int8_t>(base, elements, n, out)
                       : load_each<same<uint8_t>, uint8_t>(base, elements, n, out);
    case 16:
      return is_signed ? load_each<same<int16_t>, int16_t>(base, elements, n, out)
                       : load_each<same<uint16_t>, uint16_t>(base, elements, n, out);
    case 32:
      return is_signed ? load_each<same<int32_t>, int32_t>(base, elements, n, out)
                       : load_each<same<uint32_t>, uint32_t>(base, elements, n, out);
    default: return load_each<same<int64_t>, int64_t>(base, elements, n, out);
  }
}

void store_integers(DType type, void* base, Elements elements, int64_t n, const int64_t* in) {
  if (type.is_bool()) return store_each<truth_bits, uint8_t>(base, elements, n, in);
  switch (type.bits) {
    case 4: return store_packed(base, elements, n, in, [](int64_t x) { return x; });
    case 8: return store_each<low_bits<uint8_t>, uint8_t>(base, elements, n, in);
    case 16: return store_each<low_bits<uint16_t>, uint16_t>(base, elements, n, in);
    case 32: return store_each<low_bits<uint32_t>, uint32_t>(base, elements, n, in);
    default: return store_each<same<int64_t>, int64_t>(base, elements, n, in);
  }
}

}  // namespace

void load_lanes(DType type, const void* base, Elements elements, int64_t n, void* out) {
  if (!type.is_float()) return load_integers(type, base, elements, n, static_cast<int64_t*>(out));
  auto* floats = static_cast<float*>(out);
  switch (type.kind) {
    case Kind::Float:
      if (type == f16) return load_each<scalar::load_f16, uint16_t>(base, elements, n, floats);
      if (type == f64) return load_each<same<double>, double>(base, elements, n, static_cast<double*>(out));
      return load_each<same<float>, float>(base, elements, n, floats);
    case Kind::TFloat: return load_each<same<float>, float>(base, elements, n, floats);
    case Kind::BFloat: return load_each<scalar::load_bf16, uint16_t>(base, elements, n, floats);
    case Kind::Float8E4M3FN: return load_each<scalar::load_e4m3, uint8_t>(base, elements, n, floats);
    case Kind::Float8E5M2: return load_each<scalar::load_e5m2, uint8_t>(base, elements, n, floats);
    case Kind::Float8E3M4: return load_each<scalar::load_e3m4, uint8_t>(base, elements, n, floats);
    case Kind::Float8E4M3B11FNUZ: return load_each<scalar::load_e4m3b11fnuz, uint8_t>(base, elements, n, floats);
    case Kind::Float8E4M3FNUZ: return load_each<scalar::load_e4m3fnuz, uint8_t>(base, elements, n, floats);
    case Kind::Float8E5M2FNUZ: return load_each<scalar::load_e5m2fnuz, uint8_t>(base, elements, n, floats);
    case Kind::Float6E2M3FN: return load_each<scalar::load_e2m3, uint8_t>(base, elements, n, floats);
    case Kind::Float6E3M2FN: return load_each<scalar::load_e3m2, uint8_t>(base, elements, n, floats);
    case Kind::Float8E8M0: return load_each<scalar::load_e8m0, uint8_t>(base, elements, n, floats);
    default: return load_packed(base, elements, n, floats, [](uint8_t x) { return scalar::load_e2m1(x); });
  }
}

void store_lanes(DType type, void* base, Elements elements, int64_t n, const void* in) {
  if (!type.is_float()) return store_integers(type, base, elements, n, static_cast<const int64_t*>(in));
  const auto* floats = static_cast<const float*>(in);
  switch (type.kind) {
    case Kind::Float:
      if (type == f16) return store_each<scalar::store_f16, uint16_t>(base, elements, n, floats);
      if (type == f64) return store_each<same<double>, double>(base, elements, n, static_cast<const double*>(in));
      return store_each<same<float>, float>(base, elements, n, floats);
    case Kind::TFloat: return store_each<same<float>, float>(base, elements, n, floats);
    case Kind::BFloat: return store_each<scalar::store_bf16, uint16_t>(base, elements, n, floats);
    case Kind::Float8E4M3FN: return store_each<scalar::store_e4m3, uint8_t>(base, elements, n, floats);
    case Kind::Float8E5M2: return store_each<scalar::keep_e5m2, uint8_t>(base, elements, n, floats);
    case Kind::Float8E3M4: return store_each<scalar::store_e3m4, uint8_t>(base, elements, n, floats);
    case Kind::Float8E4M3B11FNUZ: return store_each<scalar::store_e4m3b11fnuz, uint8_t>(base, elements, n, floats);
    case Kind::Float8E4M3FNUZ: return store_each<scalar::store_e4m3fnuz, uint8_t>(base, elements, n, floats);
    case Kind::Float8E5M2FNUZ: return store_each<scalar::store_e5m2fnuz, uint8_t>(base, elements, n, floats);
    case Kind::Float6E2M3FN: return store_each<scalar::store_e2m3, uint8_t>(base, elements, n, floats);
    case Kind::Float6E3M2FN: return store_each<scalar::store_e3m2, uint8_t>(base, elements, n, floats);
    case Kind::Float8E8M0: return store_each<scalar::store_e8m0, uint8_t>(base, elements, n, floats);
    default: return store_packed(base, elements, n, floats, [](float x) { return scalar::store_e2m1(x); });
  }
}

}  // namespace tilewright
