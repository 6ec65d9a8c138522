// Transcendental functions. Those on float that deep-learning kernels lean on are branch-free text of our own, which
// compilers vectorize; the others go through the C library's double and round once, as all of double does.
// The bounds are in scalar/functions.cpp, measured over all 2^32 floats where it says so. Nothing flushes subnormals.

// p * 2^n for |n| <= 252, in two steps so that the power is always representable and a subnormal result rounds once.
//@ scale_f32: f32_of_bits
[[gnu::always_inline]] static inline float scale_f32(float p, int32_t n) {
  const int32_t half = n >> 1;
  return p * f32_of_bits((uint32_t)(half + 127) << 23) * f32_of_bits((uint32_t)(n - half + 127) << 23);
}

// The nearest integer of |x| < 2^22, as a float: adding 1.5 * 2^23 leaves no fraction. whole_bits gives it as an
// integer.
//@ whole_f32:
[[gnu::always_inline]] static inline float whole_f32(float x) { return (x + 0x1.8p23f) - 0x1.8p23f; }

//@ whole_bits: bits_of_f32
[[gnu::always_inline]] static inline int32_t whole_bits(float whole) {
  return (int32_t)(bits_of_f32(whole + 0x1.8p23f) - 0x4b400000u);
}

// x held to [low, high]; NaN stays.
//@ hold_f32:
[[gnu::always_inline]] static inline float hold_f32(float x, float low, float high) {
  const float y = x < low ? low : x;
  return y > high ? high : y;
}

// e^r for |r| <= 0.3467: minimax, relative error 3.1e-9.
//@ exp_core:
[[gnu::always_inline]] static inline float exp_core(float r) {
  float p = 1.381455921e-03f;
  p = __builtin_fmaf(p, r, 8.368735202e-03f);
  p = __builtin_fmaf(p, r, 4.166838899e-02f);
  p = __builtin_fmaf(p, r, 1.666652113e-01f);
  p = __builtin_fmaf(p, r, 4.999999404e-01f);
  p = __builtin_fmaf(p, r, 1.0f);
  return __builtin_fmaf(p, r, 1.0f);
}

//@ exp_f32: exp_core scale_f32 whole_f32 whole_bits hold_f32
[[gnu::always_inline]] static inline float exp_f32(float x) {
  const float y = hold_f32(x, -120.0f, 100.0f), n = whole_f32(y * 1.442695041f);
  const float r = __builtin_fmaf(n, -1.428606765e-06f, __builtin_fmaf(n, -6.931457520e-01f, y));
  return scale_f32(exp_core(r), whole_bits(n));
}

// 2^f for |f| <= 1/2: minimax, relative error 2.0e-9.
//@ exp2_f32: scale_f32 whole_f32 whole_bits hold_f32
[[gnu::always_inline]] static inline float exp2_f32(float x) {
  const float y = hold_f32(x, -160.0f, 130.0f), n = whole_f32(y), f = y - n;
  float p = 1.535335177e-04f;
  p = __builtin_fmaf(p, f, 1.339888782e-03f);
  p = __builtin_fmaf(p, f, 9.618437849e-03f);
  p = __builtin_fmaf(p, f, 5.550332367e-02f);
  p = __builtin_fmaf(p, f, 2.402264774e-01f);
  p = __builtin_fmaf(p, f, 6.931471825e-01f);
  return scale_f32(__builtin_fmaf(p, f, 1.0f), whole_bits(n));
}

// 10^x = e^(r ln 10) * 2^n with r = x - n log10(2), the logarithm in three parts.
//@ exp10_f32: exp_core scale_f32 whole_f32 whole_bits hold_f32
[[gnu::always_inline]] static inline float exp10_f32(float x) {
  const float y = hold_f32(x, -50.0f, 40.0f), n = whole_f32(y * 3.321928024f);
  const float r = __builtin_fmaf(n, -4.605039067e-06f, __builtin_fmaf(n, -3.010253906e-01f, y));
  return scale_f32(exp_core(__builtin_fmaf(r, 2.302585125e+00f, r * -3.197543563e-08f)), whole_bits(n));
}

// x = 2^e * (1 + f) with 1 + f in [2/3, 4/3). Only for finite x > 0; a subnormal is scaled first.
//@ log_exponent: bits_of_f32
[[gnu::always_inline]] static inline float log_exponent(float x) {
  const bool tiny = x < 0x1p-126f;
  const int32_t e = (int32_t)(bits_of_f32(tiny ? x * 0x1p23f : x) - 0x3f2aaaabu) >> 23;
  return (float)(tiny ? e - 23 : e);
}

//@ log_fraction: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float log_fraction(float x) {
  const uint32_t bits = bits_of_f32(x < 0x1p-126f ? x * 0x1p23f : x) - 0x3f2aaaabu;
  return f32_of_bits((bits & 0x7fffffu) + 0x3f2aaaabu) - 1.0f;
}

// ln(1 + f) - f for f in [-1/3, 1/3]: minimax, error 4.5e-9 of the logarithm.
//@ log_tail:
[[gnu::always_inline]] static inline float log_tail(float f) {
  float p = -1.295031458e-01f;
  p = __builtin_fmaf(p, f, 1.400611550e-01f);
  p = __builtin_fmaf(p, f, -1.216686741e-01f);
  p = __builtin_fmaf(p, f, 1.400090754e-01f);
  p = __builtin_fmaf(p, f, -1.668232530e-01f);
  p = __builtin_fmaf(p, f, 2.001076192e-01f);
  p = __builtin_fmaf(p, f, -2.499971688e-01f);
  p = __builtin_fmaf(p, f, 3.333320916e-01f);
  p = __builtin_fmaf(p, f, -0.5f);
  return p * (f * f);
}

// The logarithm's values outside finite x > 0.
//@ log_special:
[[gnu::always_inline]] static inline float log_special(float x, float finite) {
  const float y = x == __builtin_inff() ? x : finite;
  const float z = x == 0.0f ? -__builtin_inff() : y;
  return x >= 0.0f ? z : __builtin_nanf("");
}

//@ log_f32: log_exponent log_fraction log_tail log_special
[[gnu::always_inline]] static inline float log_f32(float x) {
  const float e = log_exponent(x), f = log_fraction(x);
  const float low = __builtin_fmaf(e, -1.904654212e-09f, log_tail(f));
  return log_special(x, __builtin_fmaf(e, 0.693147182f, f + low));
}

//@ log2_f32: log_exponent log_fraction log_tail log_special
[[gnu::always_inline]] static inline float log2_f32(float x) {
  const float e = log_exponent(x), f = log_fraction(x);
  const float low = __builtin_fmaf(f, 1.925963034e-08f, log_tail(f) * 1.442695022e+00f);
  return log_special(x, e + __builtin_fmaf(f, 1.442695022e+00f, low));
}

//@ log10_f32: log_exponent log_fraction log_tail log_special
[[gnu::always_inline]] static inline float log10_f32(float x) {
  const float e = log_exponent(x), f = log_fraction(x);
  const float low = __builtin_fmaf(f, -1.010304995e-08f, log_tail(f) * 4.342944920e-01f);
  const float fraction = __builtin_fmaf(f, 4.342944920e-01f, __builtin_fmaf(e, 4.605039067e-06f, low));
  return log_special(x, __builtin_fmaf(e, 3.010253906e-01f, fraction));
}

// Below 0.55 an odd polynomial (error 1.3e-9), from there 1 - 2 / (e^2x + 1).
//@ tanh_f32: exp_f32
[[gnu::always_inline]] static inline float tanh_f32(float x) {
  const float a = __builtin_fabsf(x), s = x * x;
  float p = -6.198726129e-03f;
  p = __builtin_fmaf(p, s, 2.102055587e-02f);
  p = __builtin_fmaf(p, s, -5.384051800e-02f);
  p = __builtin_fmaf(p, s, 1.333248019e-01f);
  p = __builtin_fmaf(p, s, -3.333331347e-01f);
  const float small = __builtin_fmaf(p * s, a, a), large = 1.0f - 2.0f / (exp_f32(a + a) + 1.0f);
  return __builtin_copysignf(a < 0.55f ? small : large, x);
}

// 1 / (1 + e^-x), written with e^-|x| so that it keeps its digits, and its subnormals, for large negative x.
//@ sigmoid_f32: exp_f32
[[gnu::always_inline]] static inline float sigmoid_f32(float x) {
  const float z = exp_f32(-__builtin_fabsf(x));
  return (x < 0.0f ? z : 1.0f) / (1.0f + z);
}

//@ rsqrt_f32:
[[gnu::always_inline]] static inline float rsqrt_f32(float x) { return 1.0f / __builtin_sqrtf(x); }

// Correctly rounded: checked for every mantissa and both parities of the exponent.
//@ rsqrt_rn_f32:
[[gnu::always_inline]] static inline float rsqrt_rn_f32(float x) { return (float)(1.0 / __builtin_sqrt((double)x)); }

// Below 0.92 x times an even polynomial (error 4.6e-10), from there 1 - e^-Q(x) (error 4.0e-11 of the result).
//@ erf_f32: exp_f32 hold_f32
[[gnu::always_inline]] static inline float erf_f32(float x) {
  const float a = hold_f32(__builtin_fabsf(x), 0.0f, 4.0f), s = a * a;
  float p = 8.316794265e-05f;
  p = __builtin_fmaf(p, s, -8.130018250e-04f);
  p = __builtin_fmaf(p, s, 5.199907348e-03f);
  p = __builtin_fmaf(p, s, -2.685894258e-02f);
  p = __builtin_fmaf(p, s, 1.128368750e-01f);
  p = __builtin_fmaf(p, s, -3.761263192e-01f);
  p = __builtin_fmaf(p, s, 1.283791661e-01f);
  float q = -2.259046369e-06f;
  q = __builtin_fmaf(q, a, 3.606623432e-05f);
  q = __builtin_fmaf(q, a, -2.288221149e-04f);
  q = __builtin_fmaf(q, a, 5.524643930e-04f);
  q = __builtin_fmaf(q, a, 1.722157467e-03f);
  q = __builtin_fmaf(q, a, -2.115764469e-02f);
  q = __builtin_fmaf(q, a, 1.040987819e-01f);
  q = __builtin_fmaf(q, a, 6.361249685e-01f);
  q = __builtin_fmaf(q, a, 1.128459811e+00f);
  const float large = __builtin_copysignf(1.0f - exp_f32(-q * a), x);
  return a < 0.92f ? __builtin_fmaf(p, x, x) : large;
}
