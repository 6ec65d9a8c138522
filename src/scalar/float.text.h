// Float functions that are exact or correctly rounded: the same bits on every engine. Predicates give a bool as 0 or 1.
// Suffix _f32: on float (and so on every narrower type, rounded afterwards); _f64: on double.

//@ add_f32:
[[gnu::always_inline]] static inline float add_f32(float a, float b) { return a + b; }

//@ add_f64:
[[gnu::always_inline]] static inline double add_f64(double a, double b) { return a + b; }

//@ sub_f32:
[[gnu::always_inline]] static inline float sub_f32(float a, float b) { return a - b; }

//@ sub_f64:
[[gnu::always_inline]] static inline double sub_f64(double a, double b) { return a - b; }

//@ mul_f32:
[[gnu::always_inline]] static inline float mul_f32(float a, float b) { return a * b; }

//@ mul_f64:
[[gnu::always_inline]] static inline double mul_f64(double a, double b) { return a * b; }

//@ div_f32:
[[gnu::always_inline]] static inline float div_f32(float a, float b) { return a / b; }

//@ div_f64:
[[gnu::always_inline]] static inline double div_f64(double a, double b) { return a / b; }

//@ fma_f32:
[[gnu::always_inline]] static inline float fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

//@ fma_f64:
[[gnu::always_inline]] static inline double fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }

//@ sqrt_f32:
[[gnu::always_inline]] static inline float sqrt_f32(float x) { return __builtin_sqrtf(x); }

//@ sqrt_f64:
[[gnu::always_inline]] static inline double sqrt_f64(double x) { return __builtin_sqrt(x); }

//@ rcp_f32:
[[gnu::always_inline]] static inline float rcp_f32(float x) { return 1.0f / x; }

//@ rcp_f64:
[[gnu::always_inline]] static inline double rcp_f64(double x) { return 1.0 / x; }

// Within a unit in the last place; where there is no instruction for less, as good as can be.
//@ rcp_approx_f32:
[[gnu::always_inline]] static inline float rcp_approx_f32(float x) { return 1.0f / x; }

//@ rcp_approx_f64:
[[gnu::always_inline]] static inline double rcp_approx_f64(double x) { return 1.0 / x; }

//@ abs_f32:
[[gnu::always_inline]] static inline float abs_f32(float x) { return __builtin_fabsf(x); }

//@ abs_f64:
[[gnu::always_inline]] static inline double abs_f64(double x) { return __builtin_fabs(x); }

//@ neg_f32:
[[gnu::always_inline]] static inline float neg_f32(float x) { return -x; }

//@ neg_f64:
[[gnu::always_inline]] static inline double neg_f64(double x) { return -x; }

//@ floor_f32:
[[gnu::always_inline]] static inline float floor_f32(float x) { return __builtin_floorf(x); }

//@ floor_f64:
[[gnu::always_inline]] static inline double floor_f64(double x) { return __builtin_floor(x); }

//@ ceil_f32:
[[gnu::always_inline]] static inline float ceil_f32(float x) { return __builtin_ceilf(x); }

//@ ceil_f64:
[[gnu::always_inline]] static inline double ceil_f64(double x) { return __builtin_ceil(x); }

//@ trunc_f32:
[[gnu::always_inline]] static inline float trunc_f32(float x) { return __builtin_truncf(x); }

//@ trunc_f64:
[[gnu::always_inline]] static inline double trunc_f64(double x) { return __builtin_trunc(x); }

// Ties to even; the rounding mode is never changed.
//@ rint_f32:
[[gnu::always_inline]] static inline float rint_f32(float x) { return __builtin_rintf(x); }

//@ rint_f64:
[[gnu::always_inline]] static inline double rint_f64(double x) { return __builtin_rint(x); }

// Ties away from zero.
//@ round_f32:
[[gnu::always_inline]] static inline float round_f32(float x) {
  const float whole = __builtin_truncf(x), rest = __builtin_fabsf(x - whole);
  return __builtin_copysignf(rest >= 0.5f ? __builtin_fabsf(whole) + 1.0f : whole, x);
}

//@ round_f64:
[[gnu::always_inline]] static inline double round_f64(double x) {
  const double whole = __builtin_trunc(x), rest = __builtin_fabs(x - whole);
  return __builtin_copysign(rest >= 0.5 ? __builtin_fabs(whole) + 1.0 : whole, x);
}

//@ copysign_f32:
[[gnu::always_inline]] static inline float copysign_f32(float x, float sign) { return __builtin_copysignf(x, sign); }

//@ copysign_f64:
[[gnu::always_inline]] static inline double copysign_f64(double x, double sign) { return __builtin_copysign(x, sign); }

// The neighbour of x toward y; y where they are equal.
//@ nextafter_f32: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float nextafter_f32(float x, float y) {
  const uint32_t bits = bits_of_f32(x), step = (x < y) == (x > 0.0f) ? bits + 1u : bits - 1u;
  const uint32_t least = (bits_of_f32(y) & 0x80000000u) | 1u;
  const float next = f32_of_bits(x == 0.0f ? least : step);
  return (x != x) | (y != y) ? x + y : x == y ? y : next;
}

//@ nextafter_f64: bits_of_f64 f64_of_bits
[[gnu::always_inline]] static inline double nextafter_f64(double x, double y) {
  const uint64_t bits = bits_of_f64(x), step = (x < y) == (x > 0.0) ? bits + 1u : bits - 1u;
  const uint64_t least = (bits_of_f64(y) & 0x8000000000000000u) | 1u;
  const double next = f64_of_bits(x == 0.0 ? least : step);
  return (x != x) | (y != y) ? x + y : x == y ? y : next;
}

// x times 2 to the whole part of n. Powers as far as that are doubles, and so are the products: only the last rounds.
//@ ldexp_f32: f64_of_bits
[[gnu::always_inline]] static inline float ldexp_f32(float x, float n) {
  const float low = n < -280.0f ? -280.0f : n, held = low > 280.0f ? 280.0f : low;
  const int32_t e = n == n ? (int32_t)held : 0;
  const float scaled = (float)((double)x * f64_of_bits((uint64_t)(1023 + e) << 52));
  return n == n ? scaled : n;
}

//@ ldexp_f64: types
[[gnu::always_inline]] static inline double ldexp_f64(double x, double n) {
  const double low = n < -3000.0 ? -3000.0 : n, held = low > 3000.0 ? 3000.0 : low;
  return n == n ? __builtin_ldexp(x, (int32_t)held) : n;
}

//@ isnan_f32: types
[[gnu::always_inline]] static inline uint8_t isnan_f32(float x) { return x != x; }

//@ isnan_f64: types
[[gnu::always_inline]] static inline uint8_t isnan_f64(double x) { return x != x; }

//@ isinf_f32: types
[[gnu::always_inline]] static inline uint8_t isinf_f32(float x) { return __builtin_fabsf(x) == __builtin_inff(); }

//@ isinf_f64: types
[[gnu::always_inline]] static inline uint8_t isinf_f64(double x) { return __builtin_fabs(x) == __builtin_inf(); }

//@ isfinite_f32: types
[[gnu::always_inline]] static inline uint8_t isfinite_f32(float x) { return __builtin_fabsf(x) < __builtin_inff(); }

//@ isfinite_f64: types
[[gnu::always_inline]] static inline uint8_t isfinite_f64(double x) { return __builtin_fabs(x) < __builtin_inf(); }

//@ fmod_f32:
[[gnu::always_inline]] static inline float fmod_f32(float a, float b) { return __builtin_fmodf(a, b); }

//@ fmod_f64:
[[gnu::always_inline]] static inline double fmod_f64(double a, double b) { return __builtin_fmod(a, b); }

// The operand that is not NaN; -0 is less than +0. Where the operands are equal, only the bits of zeros differ: they
// meet in the sign bit. Where one is NaN, r is a.
//@ min_f32: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float min_f32(float a, float b) {
  const float p = b < a ? b : a, one = f32_of_bits(bits_of_f32(p) | bits_of_f32(b));
  const float r = a >= b ? one : a;
  return a != a ? b : r;
}

//@ min_f64: bits_of_f64 f64_of_bits
[[gnu::always_inline]] static inline double min_f64(double a, double b) {
  const double p = b < a ? b : a, one = f64_of_bits(bits_of_f64(p) | bits_of_f64(b));
  const double r = a >= b ? one : a;
  return a != a ? b : r;
}

//@ max_f32: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float max_f32(float a, float b) {
  const float p = b > a ? b : a, one = f32_of_bits(bits_of_f32(p) & bits_of_f32(b));
  const float r = a <= b ? one : a;
  return a != a ? b : r;
}

//@ max_f64: bits_of_f64 f64_of_bits
[[gnu::always_inline]] static inline double max_f64(double a, double b) {
  const double p = b > a ? b : a, one = f64_of_bits(bits_of_f64(p) & bits_of_f64(b));
  const double r = a <= b ? one : a;
  return a != a ? b : r;
}

// NaN if either operand is.
//@ min_nan_f32: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float min_nan_f32(float a, float b) {
  const float p = b < a ? b : a, one = f32_of_bits(bits_of_f32(p) | bits_of_f32(b));
  const float r = a >= b ? one : a;
  return b != b ? b : r;
}

//@ min_nan_f64: bits_of_f64 f64_of_bits
[[gnu::always_inline]] static inline double min_nan_f64(double a, double b) {
  const double p = b < a ? b : a, one = f64_of_bits(bits_of_f64(p) | bits_of_f64(b));
  const double r = a >= b ? one : a;
  return b != b ? b : r;
}

//@ max_nan_f32: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float max_nan_f32(float a, float b) {
  const float p = b > a ? b : a, one = f32_of_bits(bits_of_f32(p) & bits_of_f32(b));
  const float r = a <= b ? one : a;
  return b != b ? b : r;
}

//@ max_nan_f64: bits_of_f64 f64_of_bits
[[gnu::always_inline]] static inline double max_nan_f64(double a, double b) {
  const double p = b > a ? b : a, one = f64_of_bits(bits_of_f64(p) & bits_of_f64(b));
  const double r = a <= b ? one : a;
  return b != b ? b : r;
}

//@ clamp_f32: min_nan_f32 max_nan_f32
[[gnu::always_inline]] static inline float clamp_f32(float x, float low, float high) {
  return min_nan_f32(max_nan_f32(x, low), high);
}

//@ clamp_f64: min_nan_f64 max_nan_f64
[[gnu::always_inline]] static inline double clamp_f64(double x, double low, double high) {
  return min_nan_f64(max_nan_f64(x, low), high);
}
