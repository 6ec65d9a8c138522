// Transcendental functions. Those on float that deep-learning kernels lean on are branch-free text of our own, which
// compilers vectorize; the others go through the C library's double and round once, as all of double does.
// The bounds are in scalar/functions.cpp, measured over all 2^32 floats where it says so. Nothing flushes subnormals.

// p * 2^n for p in [1/2, 2) and -200 <= n <= 200, where `shifted` is 1.5 * 2^23 + n: in two steps, so that both powers
// are normal and a subnormal result rounds once. The first step adds to p's exponent.
//@ scale_f32: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float scale_f32(float p, float shifted) {
  const uint32_t n = bits_of_f32(shifted), half = n << 22 & 0xff800000u, rest = (n << 23) - half;
  return f32_of_bits(bits_of_f32(p) + half) * f32_of_bits(rest + 0x3f800000u);
}

// 1.5 * 2^23 + the nearest integer of |x| < 2^22: the sum has no room for a fraction.
//@ shifted_f32:
[[gnu::always_inline]] static inline float shifted_f32(float x) { return x + 0x1.8p23f; }

// x held to [low, high] with low < 0 < high: as bits, integers that grow with the magnitude, negative floats above all
// others. Minima are all it takes, where comparisons of floats make compilers split what follows into cases. NaN goes
// to a bound.
//@ bound_f32: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float bound_f32(float x, float low, float high) {
  const int32_t a = (int32_t)bits_of_f32(x), top = (int32_t)bits_of_f32(high);
  const int32_t b = a < top ? a : top;
  const uint32_t c = (uint32_t)b, bottom = bits_of_f32(low);
  const uint32_t d = c < bottom ? c : bottom;
  return f32_of_bits(d);
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

//@ exp_f32: exp_core scale_f32 bound_f32
[[gnu::always_inline]] static inline float exp_f32(float x) {
  const float y = bound_f32(x, -120.0f, 100.0f);
  const float shifted = __builtin_fmaf(y, 1.442695041f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  const float r = __builtin_fmaf(n, -1.428606765e-06f, __builtin_fmaf(n, -6.931457520e-01f, y));
  const float e = scale_f32(exp_core(r), shifted);
  return x != x ? x : e;
}

// e^r - 1 is r + r^2 times a polynomial (minimax, error 1.3e-8 of the result), and 2^n (e^r - 1) + (2^n - 1) rounds
// twice. Half of it is computed, so that 2^128 has no place in it. What is small is its own result.
//@ expm1_f32: bound_f32 bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float expm1_f32(float x) {
  const float y = bound_f32(x, -18.0f, 89.0f);
  const float shifted = __builtin_fmaf(y, 1.442695041f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  const float r = __builtin_fmaf(n, -1.428606765e-06f, __builtin_fmaf(n, -6.931457520e-01f, y));
  float p = 1.388251782e-03f;
  p = __builtin_fmaf(p, r, 8.366538212e-03f);
  p = __builtin_fmaf(p, r, 4.166720062e-02f);
  p = __builtin_fmaf(p, r, 1.666654348e-01f);
  p = __builtin_fmaf(p, r, 0.5f);
  const float whole = __builtin_fmaf(p * r, r, r), power = f32_of_bits((bits_of_f32(shifted) << 23) + 0x3f000000u);
  const float half = __builtin_fmaf(whole, power, power - 0.5f);
  return __builtin_fabsf(x) > 0x1p-25f ? half + half : x;
}

// 2^f for |f| <= 1/2: minimax, relative error 2.0e-9.
//@ exp2_f32: scale_f32 shifted_f32 bound_f32
[[gnu::always_inline]] static inline float exp2_f32(float x) {
  const float y = bound_f32(x, -160.0f, 130.0f), shifted = shifted_f32(y), f = y - (shifted - 0x1.8p23f);
  float p = 1.535335177e-04f;
  p = __builtin_fmaf(p, f, 1.339888782e-03f);
  p = __builtin_fmaf(p, f, 9.618437849e-03f);
  p = __builtin_fmaf(p, f, 5.550332367e-02f);
  p = __builtin_fmaf(p, f, 2.402264774e-01f);
  p = __builtin_fmaf(p, f, 6.931471825e-01f);
  const float e = scale_f32(__builtin_fmaf(p, f, 1.0f), shifted);
  return x != x ? x : e;
}

// 10^x = e^(r ln 10) * 2^n with r = x - n log10(2), the logarithm in three parts.
//@ exp10_f32: exp_core scale_f32 shifted_f32 bound_f32
[[gnu::always_inline]] static inline float exp10_f32(float x) {
  const float y = bound_f32(x, -50.0f, 40.0f), shifted = shifted_f32(y * 3.321928024f), n = shifted - 0x1.8p23f;
  const float r = __builtin_fmaf(n, -4.605039067e-06f, __builtin_fmaf(n, -3.010253906e-01f, y));
  const float e = scale_f32(exp_core(__builtin_fmaf(r, 2.302585125e+00f, r * -3.197543563e-08f)), shifted);
  return x != x ? x : e;
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

// 1 + x = 2^e (1 + f), with f = x 2^-e + (2^-e - 1) rounded once; e is that of the rounded sum. The result has the sign
// of x.
//@ log1p_f32: log_tail log_special bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float log1p_f32(float x) {
  const float sum = 1.0f + x;
  const uint32_t e = (bits_of_f32(sum) - 0x3f2aaaabu) & 0xff800000u;
  const float rest = __builtin_fmaf(0.25f, f32_of_bits(0x40800000u - e), -1.0f);
  const float f = f32_of_bits(bits_of_f32(x) - e) + rest, n = (float)((int32_t)e >> 23);
  const float low = __builtin_fmaf(n, -1.904654212e-09f, log_tail(f));
  const float y = __builtin_copysignf(__builtin_fmaf(n, 0.693147182f, f + low), x);
  return sum > 0.0f && sum < __builtin_inff() ? y : log_special(sum, 0.0f);
}

// f log2(e) and the sum with e are taken with their rounding errors: where e = 1 and f is near -1/3 they
// cancel. So for log10.
//@ log2_f32: log_exponent log_fraction log_tail log_special
[[gnu::always_inline]] static inline float log2_f32(float x) {
  const float e = log_exponent(x), f = log_fraction(x);
  const float low = __builtin_fmaf(f, 1.925963034e-08f, log_tail(f) * 1.442695022e+00f);
  const float head = f * 1.442695022e+00f, rest = __builtin_fmaf(f, 1.442695022e+00f, -head);
  const float sum = e + head, sum_rest = (e - sum) + head;
  return log_special(x, sum + (sum_rest + (rest + low)));
}

//@ log10_f32: log_exponent log_fraction log_tail log_special
[[gnu::always_inline]] static inline float log10_f32(float x) {
  const float e = log_exponent(x), f = log_fraction(x);
  const float low =
      __builtin_fmaf(e, 4.605039067e-06f, __builtin_fmaf(f, -1.010304995e-08f, log_tail(f) * 4.342944920e-01f));
  const float head = f * 4.342944920e-01f, rest = __builtin_fmaf(f, 4.342944920e-01f, -head);
  const float whole = e * 3.010253906e-01f, sum = whole + head, sum_rest = (whole - sum) + head;
  return log_special(x, sum + (sum_rest + (rest + low)));
}

// a / b where b and the quotient have magnitudes between 2^-60 and 2^60: a device need not ask for others.
//@ moderate_quotient_f32:
[[gnu::always_inline]] static inline float moderate_quotient_f32(float a, float b) { return a / b; }

// e^x for 0 <= x <= 60, which needs no step for what is not normal.
//@ exp_of_moderate: exp_core bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float exp_of_moderate(float x) {
  const float shifted = __builtin_fmaf(x, 1.442695041f, 0x1.8p23f), n = shifted - 0x1.8p23f;
  const float r = __builtin_fmaf(n, -1.428606765e-06f, __builtin_fmaf(n, -6.931457520e-01f, x));
  return f32_of_bits(bits_of_f32(exp_core(r)) + (bits_of_f32(shifted) << 23));
}

// Below 0.55 an odd polynomial (error 1.3e-9), from there 1 - 2 / (e^2x + 1), which is 1 from 9.02 on.
//@ tanh_f32: exp_of_moderate moderate_quotient_f32
[[gnu::always_inline]] static inline float tanh_f32(float x) {
  const float a = __builtin_fabsf(x), s = x * x, b = a < 15.0f ? a : 15.0f;
  float p = -6.198726129e-03f;
  p = __builtin_fmaf(p, s, 2.102055587e-02f);
  p = __builtin_fmaf(p, s, -5.384051800e-02f);
  p = __builtin_fmaf(p, s, 1.333248019e-01f);
  p = __builtin_fmaf(p, s, -3.333331347e-01f);
  const float small = __builtin_fmaf(p * s, a, a);
  const float large = 1.0f - moderate_quotient_f32(2.0f, exp_of_moderate(b + b) + 1.0f);
  return __builtin_copysignf(a >= 0.55f ? large : small, x);
}

// 1 / (1 + e^-x), written with e^-|x| so that it keeps its digits, and its subnormals, for large negative x. A
// quotient that is too small to be a moderate one is by 1.
//@ sigmoid_f32: exp_f32 moderate_quotient_f32
[[gnu::always_inline]] static inline float sigmoid_f32(float x) {
  const float z = exp_f32(-__builtin_fabsf(x));
  return moderate_quotient_f32(x < 0.0f ? z : 1.0f, 1.0f + z);
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

// 2^e * 2/pi modulo 4 for e = 0 to 104, and what rounding it to double leaves; multiples of 4 are whole turns.
//@ quadrant_high:
static const double quadrant_high[105] = {
    0x1.45f306dc9c883p-1, 0x1.45f306dc9c883p+0, 0x1.45f306dc9c883p+1, 0x1.17cc1b727220bp+0, 0x1.17cc1b727220bp+1,
    0x1.7cc1b727220a9p-2, 0x1.7cc1b727220a9p-1, 0x1.7cc1b727220a9p+0, 0x1.7cc1b727220a9p+1, 0x1.f306dc9c882a5p+0,
    0x1.f306dc9c882a5p+1, 0x1.e60db9391054ap+1, 0x1.cc1b727220a95p+1, 0x1.9836e4e44152ap+1, 0x1.306dc9c882a54p+1,
    0x1.836e4e44152a0p-1, 0x1.836e4e44152a0p+0, 0x1.836e4e44152a0p+1, 0x1.06dc9c882a540p+1, 0x1.b727220a94fe1p-4,
    0x1.b727220a94fe1p-3, 0x1.b727220a94fe1p-2, 0x1.b727220a94fe1p-1, 0x1.b727220a94fe1p+0, 0x1.b727220a94fe1p+1,
    0x1.6e4e441529fc2p+1, 0x1.b9391054a7f0ap+0, 0x1.b9391054a7f0ap+1, 0x1.727220a94fe14p+1, 0x1.c9c882a53f84fp+0,
    0x1.c9c882a53f84fp+1, 0x1.9391054a7f09dp+1, 0x1.27220a94fe13bp+1, 0x1.391054a7f09d6p-1, 0x1.391054a7f09d6p+0,
    0x1.391054a7f09d6p+1, 0x1.c882a53f84eb0p-1, 0x1.c882a53f84eb0p+0, 0x1.c882a53f84eb0p+1, 0x1.91054a7f09d5fp+1,
    0x1.220a94fe13abfp+1, 0x1.1054a7f09d5f4p-1, 0x1.1054a7f09d5f4p+0, 0x1.1054a7f09d5f4p+1, 0x1.054a7f09d5f48p-2,
    0x1.054a7f09d5f48p-1, 0x1.054a7f09d5f48p+0, 0x1.054a7f09d5f48p+1, 0x1.529fc2757d1f5p-4, 0x1.529fc2757d1f5p-3,
    0x1.529fc2757d1f5p-2, 0x1.529fc2757d1f5p-1, 0x1.529fc2757d1f5p+0, 0x1.529fc2757d1f5p+1, 0x1.4a7f09d5f47d5p+0,
    0x1.4a7f09d5f47d5p+1, 0x1.29fc2757d1f53p+0, 0x1.29fc2757d1f53p+1, 0x1.4fe13abe8fa9ap-1, 0x1.4fe13abe8fa9ap+0,
    0x1.4fe13abe8fa9ap+1, 0x1.3f84eafa3ea6ap+0, 0x1.3f84eafa3ea6ap+1, 0x1.fc2757d1f534ep-1, 0x1.fc2757d1f534ep+0,
    0x1.fc2757d1f534ep+1, 0x1.f84eafa3ea69cp+1, 0x1.f09d5f47d4d37p+1, 0x1.e13abe8fa9a6fp+1, 0x1.c2757d1f534dep+1,
    0x1.84eafa3ea69bcp+1, 0x1.09d5f47d4d377p+1, 0x1.3abe8fa9a6ee0p-3, 0x1.3abe8fa9a6ee0p-2, 0x1.3abe8fa9a6ee0p-1,
    0x1.3abe8fa9a6ee0p+0, 0x1.3abe8fa9a6ee0p+1, 0x1.d5f47d4d37703p-1, 0x1.d5f47d4d37703p+0, 0x1.d5f47d4d37703p+1,
    0x1.abe8fa9a6ee07p+1, 0x1.57d1f534ddc0ep+1, 0x1.5f47d4d377037p+0, 0x1.5f47d4d377037p+1, 0x1.7d1f534ddc0dbp+0,
    0x1.7d1f534ddc0dbp+1, 0x1.f47d4d377036ep+0, 0x1.f47d4d377036ep+1, 0x1.e8fa9a6ee06dbp+1, 0x1.d1f534ddc0db6p+1,
    0x1.a3ea69bb81b6cp+1, 0x1.47d4d377036d9p+1, 0x1.1f534ddc0db63p+0, 0x1.1f534ddc0db63p+1, 0x1.f534ddc0db629p-2,
    0x1.f534ddc0db629p-1, 0x1.f534ddc0db629p+0, 0x1.f534ddc0db629p+1, 0x1.ea69bb81b6c53p+1, 0x1.d4d377036d8a5p+1,
    0x1.a9a6ee06db14bp+1, 0x1.534ddc0db6296p+1, 0x1.4d377036d8a56p+0, 0x1.4d377036d8a56p+1, 0x1.34ddc0db6295ap+0};

//@ quadrant_low:
static const double quadrant_low[105] = {
    -0x1.6b01ec5417056p-55, -0x1.6b01ec5417056p-54, -0x1.6b01ec5417056p-53, -0x1.ac07b1505c159p-54,
    -0x1.ac07b1505c159p-53, 0x1.3f84eafa3ea6ap-56,  0x1.3f84eafa3ea6ap-55,  0x1.3f84eafa3ea6ap-54,
    0x1.3f84eafa3ea6ap-53,  0x1.fc2757d1f534ep-55,  0x1.fc2757d1f534ep-54,  0x1.fc2757d1f534ep-53,
    -0x1.ec54170565912p-59, -0x1.ec54170565912p-58, -0x1.ec54170565912p-57, -0x1.ec54170565912p-56,
    -0x1.ec54170565912p-55, -0x1.ec54170565912p-54, -0x1.ec54170565912p-53, 0x1.d5f47d4d37703p-59,
    0x1.d5f47d4d37703p-58,  0x1.d5f47d4d37703p-57,  0x1.d5f47d4d37703p-56,  0x1.d5f47d4d37703p-55,
    0x1.d5f47d4d37703p-54,  0x1.d5f47d4d37703p-53,  -0x1.505c1596447e5p-55, -0x1.505c1596447e5p-54,
    -0x1.505c1596447e5p-53, -0x1.4170565911f92p-54, -0x1.4170565911f92p-53, 0x1.7d1f534ddc0dbp-53,
    -0x1.05c1596447e49p-53, -0x1.70565911f924fp-58, -0x1.70565911f924fp-57, -0x1.70565911f924fp-56,
    -0x1.70565911f924fp-55, -0x1.70565911f924fp-54, -0x1.70565911f924fp-53, 0x1.1f534ddc0db63p-53,
    -0x1.c1596447e493bp-53, 0x1.f534ddc0db629p-55,  0x1.f534ddc0db629p-54,  0x1.f534ddc0db629p-53,
    -0x1.596447e493ad5p-57, -0x1.596447e493ad5p-56, -0x1.596447e493ad5p-55, -0x1.596447e493ad5p-54,
    0x1.a6ee06db14acdp-59,  0x1.a6ee06db14acdp-58,  0x1.a6ee06db14acdp-57,  0x1.a6ee06db14acdp-56,
    0x1.a6ee06db14acdp-55,  0x1.a6ee06db14acdp-54,  -0x1.6447e493ad4cep-55, -0x1.6447e493ad4cep-54,
    0x1.377036d8a5665p-54,  0x1.377036d8a5665p-53,  0x1.bb81b6c52b328p-55,  0x1.bb81b6c52b328p-54,
    0x1.bb81b6c52b328p-53,  -0x1.11f924eb53362p-54, -0x1.11f924eb53362p-53, -0x1.1f924eb53361ep-56,
    -0x1.1f924eb53361ep-55, -0x1.1f924eb53361ep-54, -0x1.1f924eb53361ep-53, 0x1.c0db6295993c4p-53,
    -0x1.f924eb53361dep-55, -0x1.f924eb53361dep-54, -0x1.f924eb53361dep-53, 0x1.b6c52b3278872p-58,
    0x1.b6c52b3278872p-57,  0x1.b6c52b3278872p-56,  0x1.b6c52b3278872p-55,  0x1.b6c52b3278872p-54,
    0x1.b6c52b3278872p-53,  0x1.b6295993c4390p-55,  0x1.b6295993c4390p-54,  0x1.b6295993c4390p-53,
    -0x1.275a99b0ef1bfp-54, -0x1.275a99b0ef1bfp-53, -0x1.3ad4cd8778df8p-55, -0x1.3ad4cd8778df8p-54,
    0x1.8a5664f10e410p-54,  0x1.8a5664f10e410p-53,  -0x1.d6a66c3bc6fbep-54, -0x1.d6a66c3bc6fbep-53,
    0x1.4acc9e21c8210p-55,  0x1.4acc9e21c8210p-54,  0x1.4acc9e21c8210p-53,  -0x1.6a66c3bc6fbe0p-53,
    -0x1.a99b0ef1bef80p-54, -0x1.a99b0ef1bef80p-53, 0x1.664f10e4107f9p-56,  0x1.664f10e4107f9p-55,
    0x1.664f10e4107f9p-54,  0x1.664f10e4107f9p-53,  -0x1.3361de37df00dp-53, 0x1.993c439041fe5p-53,
    -0x1.9b0ef1bef806cp-54, -0x1.9b0ef1bef806cp-53, 0x1.93c439041fe51p-54,  0x1.93c439041fe51p-53,
    -0x1.b0ef1bef806bap-54};

// x = (n + r) * pi/2 with |r| <= 1/2 and n an integer: r, relatively accurate to 2^-50 for every float. From 2^24 on x
// is an integer m of 24 bits times 2^e, and e's entries take whole turns away before the product with m can be
// large.
//@ quadrant: quadrant_high quadrant_low bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline double quadrant(float x, int32_t& n) {
  const uint32_t bits = bits_of_f32(x), exponent = bits >> 23 & 255u, least = exponent > 150u ? exponent : 150u;
  const uint32_t e = (least < 254u ? least : 254u) - 150u;
  const int64_t row = e;  // of 64 bits: GCC 12 vectorizes no other gather of doubles with AVX2
  const double m = f32_of_bits(bits - (e << 23)), high = quadrant_high[row], low = quadrant_low[row];
  const double product = m * high, whole = (product + 0x1.8p52) - 0x1.8p52;
  n = (int32_t)whole;
  return __builtin_fma(m, low, __builtin_fma(m, high, -whole));
}

// x = n pi/2 + r with |r| a little above pi/4 at most. Up to 2^17, where pi/2 in three floats is enough:
//@ near_turn: bits_of_f32
[[gnu::always_inline]] static inline float near_turn(float x, int32_t& n) {
  const float shifted = __builtin_fmaf(x, 0.636619772f, 0x1.8p23f), turns = shifted - 0x1.8p23f;
  const float first = __builtin_fmaf(turns, -0x1.921fb6p0f, x), second = __builtin_fmaf(turns, 0x1.777a5cp-25f, first);
  n = (int32_t)bits_of_f32(shifted);
  return __builtin_fmaf(turns, 0x1.ee59dap-50f, second);
}

// and anywhere:
//@ far_turn: quadrant
[[gnu::always_inline]] static inline float far_turn(float x, int32_t& n) {
  return (float)(quadrant(x, n) * 1.5707963267948966);
}

// Both, without a branch that would keep a loop from being vectorized.
//@ turn_of: near_turn far_turn
[[gnu::always_inline]] static inline float turn_of(float x, int32_t& n) {
  int32_t near_n, far_n;
  const float near_r = near_turn(x, near_n), far_r = far_turn(x, far_n);
  const bool is_near = __builtin_fabsf(x) < 0x1p17f;
  n = is_near ? near_n : far_n;
  return is_near ? near_r : far_r;
}

// sin(n pi/2 + r): minimax polynomials (errors 3.9e-9 and 1.2e-10 of the result).
//@ sin_of_turn: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float sin_of_turn(float r, int32_t n) {
  const float s = r * r;
  float p = -1.951332670e-04f;
  p = __builtin_fmaf(p, s, 8.332146332e-03f);
  p = __builtin_fmaf(p, s, -1.666665375e-01f);
  float c = 2.443092308e-05f;
  c = __builtin_fmaf(c, s, -1.388729666e-03f);
  c = __builtin_fmaf(c, s, 4.166664556e-02f);
  c = __builtin_fmaf(c, s, -0.5f);
  c = __builtin_fmaf(c, s, 1.0f);
  const float value = (n & 1) != 0 ? c : __builtin_fmaf(p * s, r, r);
  return f32_of_bits(bits_of_f32(value) ^ ((uint32_t)n << 30 & 0x80000000u));
}

// The bits that make a finite result NaN for infinite x and NaN. Or-ing them in leaves the table's load unconditional,
// which a loop needs to be vectorized.
//@ nan_unless_finite: bits_of_f32
[[gnu::always_inline]] static inline uint32_t nan_unless_finite(float x) {
  return (bits_of_f32(x) & 0x7f800000u) == 0x7f800000u ? 0x7fc00000u : 0u;
}

// Near 0 sin(x) and tan(x) are x, with its sign.
//@ sin_f32: turn_of sin_of_turn nan_unless_finite
[[gnu::always_inline]] static inline float sin_f32(float x) {
  int32_t n;
  const float r = turn_of(x, n), y = sin_of_turn(r, n);
  return f32_of_bits(bits_of_f32(__builtin_fabsf(x) > 0x1p-13f ? y : x) | nan_unless_finite(x));
}

//@ cos_f32: turn_of sin_of_turn nan_unless_finite
[[gnu::always_inline]] static inline float cos_f32(float x) {
  int32_t n;
  const float r = turn_of(x, n);
  return f32_of_bits(bits_of_f32(sin_of_turn(r, n + 1)) | nan_unless_finite(x));
}

// tan(r) by a minimax polynomial (error 1.3e-9 of the result), -1 / tan(r) after odd quarters.
//@ tan_f32: turn_of moderate_quotient_f32 nan_unless_finite
[[gnu::always_inline]] static inline float tan_f32(float x) {
  int32_t n;
  const float r = turn_of(x, n), s = r * r;
  float p = 4.408781882e-03f;
  p = __builtin_fmaf(p, s, 2.523193689e-05f);
  p = __builtin_fmaf(p, s, 1.088522654e-02f);
  p = __builtin_fmaf(p, s, 2.126365155e-02f);
  p = __builtin_fmaf(p, s, 5.406339839e-02f);
  p = __builtin_fmaf(p, s, 1.333263367e-01f);
  p = __builtin_fmaf(p, s, 3.333334923e-01f);
  const float t = __builtin_fmaf(p * s, r, r), y = (n & 1) != 0 ? moderate_quotient_f32(-1.0f, t) : t;
  return f32_of_bits(bits_of_f32(__builtin_fabsf(x) > 0x1p-13f ? y : x) | nan_unless_finite(x));
}
