// Conversions between data types. A value of f16, bf16, tf32, fp8, fp6 or fp4 is held as a C++ float, which represents
// it exactly; load_<t> reads its bits, store_<t> rounds and writes bits, round_<t> rounds and stays a float. Rounding
// is to nearest, ties to even, once. f16 and bf16 overflow to infinity, fp8, fp6 and fp4 saturate to the largest finite
// value (infinities too). An e5m2 that is infinite already is not rounded: keep_e5m2 writes its bits. The NaN that is
// stored is PTX's canonical one: 0x7fff for 16 bits, 0x7f for fp8; fp4 has none and takes +6 (PTX ISA 9.7.9.21, cvt:
// "NaN results are converted to positive MAX_NORM").

// A format of m mantissa bits and exponent bias b: the value of a code without its sign.
//@ small_load: bits_of_f32 f32_of_bits
template <int m, int b>
[[gnu::always_inline]] static inline float small_load(uint32_t code) {
  return f32_of_bits(code << (23 - m)) * f32_of_bits((uint32_t)(254 - b) << 23);
}

// a * b + c where a * b is exact: one rounding with or without an instruction for both.
//@ exact_fma:
[[gnu::always_inline]] static inline float exact_fma(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

// The power of two at or below |x| but no less than the least normal value, for the bits of |x|.
//@ small_binade: types
template <int b>
[[gnu::always_inline]] static inline uint32_t small_binade(uint32_t magnitude) {
  constexpr uint32_t least = (uint32_t)(128 - b) << 23;
  const uint32_t binade = magnitude & 0x7f800000u;
  return binade > least ? binade : least;
}

// The code of x with its sign at bit `bits` - 1, in the low 8 or 16 bits, for numbers: |x| is held to the float whose
// bits are `most`. A sum with 2^(23 - m) times the binade, whose last place is the format's, rounds; what its low bits
// then count from the binade's exponent on is the code but for 2^m times that exponent. The bias is added to the sum
// and not taken from the exponent, which modulo 2^8 (m = 10: 2^16) is the same.
//@ small_store: bits_of_f32 f32_of_bits exact_fma small_binade
template <int m, int b, int bits, uint32_t most>
[[gnu::always_inline]] static inline uint32_t small_store(float x) {
  const uint32_t a = bits_of_f32(x) & 0x7fffffffu, magnitude = a < most ? a : most;
  const uint32_t sign = bits_of_f32(x) >> (32 - bits) & 1u << (bits - 1);
  const uint32_t binade = small_binade<b>(magnitude), factor = ((uint32_t)(150 - m) << 23 | (uint32_t)b << m) | sign;
  return bits_of_f32(exact_fma(f32_of_bits(binade), f32_of_bits(factor), f32_of_bits(magnitude))) +
         (binade >> (23 - m));
}

// x rounded to the format, for numbers: |x| is held to the float whose bits are `most`.
//@ small_round: bits_of_f32 f32_of_bits small_binade
template <int m, int b, uint32_t most>
[[gnu::always_inline]] static inline float small_round(float x) {
  const uint32_t a = bits_of_f32(x) & 0x7fffffffu, magnitude = a < most ? a : most;
  const float anchor = f32_of_bits(small_binade<b>(magnitude) + ((uint32_t)(23 - m) << 23));
  const float rounded = (f32_of_bits(magnitude) + anchor) - anchor;
  return f32_of_bits(bits_of_f32(rounded) | (bits_of_f32(x) & 0x80000000u));
}

// Stochastic rounding of |x| with the low n bits r of `random`: away from zero exactly if f + r / 2^n >= 1, where f is
// the discarded fraction, in units of the format's last place at x. This is the carry of PTX cvt.rs, with the random
// bits at the top of the discarded ones. random = 0 rounds toward zero.
//@ small_store_rs: bits_of_f32 f32_of_bits
template <int m, int b, int n>
[[gnu::always_inline]] static inline uint32_t small_store_rs(float x, uint32_t random) {
  const uint32_t a = bits_of_f32(x) & 0x7fffffffu, r = random & ((1u << n) - 1);
  const uint32_t normal = ((a + (r << (23 - m - n))) >> (23 - m)) - ((uint32_t)(127 - b) << m);
  const float units = (a < 0x3f800000u ? f32_of_bits(a) : 0.0f) * f32_of_bits((uint32_t)(126 + b + m) << 23);
  const int32_t whole = (int32_t)(units < 65536.0f ? units : 0.0f);
  const uint32_t subnormal =
      (uint32_t)whole + (units - (float)whole >= 1.0f - (float)(int32_t)r * f32_of_bits((127u - n) << 23));
  return a < ((uint32_t)(128 - b) << 23) ? subnormal : normal;
}

//@ sign_of_f32: bits_of_f32
[[gnu::always_inline]] static inline uint32_t sign_of_f32(float x) { return bits_of_f32(x) & 0x80000000u; }

//@ load_f16: small_load
[[gnu::always_inline]] static inline float load_f16(uint16_t bits) {
  const uint32_t code = bits & 0x7fffu, sign = (uint32_t)(bits & 0x8000u) << 16;
  const uint32_t special = (code >= 0x7c00u ? 0x7f800000u : 0u) | (code > 0x7c00u ? 0x00400000u : 0u);
  return f32_of_bits(bits_of_f32(small_load<10, 15>(code)) | special | sign);
}

//@ store_f16: small_store
[[gnu::always_inline]] static inline uint16_t store_f16(float x) {
  const uint32_t code = small_store<10, 15, 16, 0x47800000u>(x);  // 65536, whose code is infinity's
  return (uint16_t)(x != x ? 0x7fffu : code);
}

//@ round_f16: small_round
[[gnu::always_inline]] static inline float round_f16(float x) {
  const float y = small_round<10, 15, 0x47800000u>(x);
  const float z = f32_of_bits(bits_of_f32(y) + (__builtin_fabsf(y) < 65536.0f ? 0u : 0x38000000u));  // 65536: infinity
  return x != x ? x : z;
}

//@ load_bf16: f32_of_bits
[[gnu::always_inline]] static inline float load_bf16(uint16_t bits) { return f32_of_bits((uint32_t)bits << 16); }

//@ store_bf16: bits_of_f32
[[gnu::always_inline]] static inline uint16_t store_bf16(float x) {
  const uint32_t bits = bits_of_f32(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
  return (uint16_t)(x != x ? 0x7fffu : rounded);
}

//@ round_bf16: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float round_bf16(float x) {
  const uint32_t bits = bits_of_f32(x), rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) & 0xffff0000u;
  return x != x ? x : f32_of_bits(rounded);
}

// tf32 keeps float's exponent and 10 bits of its mantissa.
//@ round_tf32: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float round_tf32(float x) {
  const uint32_t bits = bits_of_f32(x), rounded = (bits + 0xfffu + ((bits >> 13) & 1)) & 0xffffe000u;
  return x != x ? x : f32_of_bits(rounded);
}

//@ load_e4m3: small_load
[[gnu::always_inline]] static inline float load_e4m3(uint8_t bits) {
  const uint32_t code = bits & 0x7fu, sign = (uint32_t)(bits & 0x80u) << 24;
  return f32_of_bits(bits_of_f32(small_load<3, 7>(code)) | (code == 0x7fu ? 0x7fc00000u : 0u) | sign);
}

//@ store_e4m3: small_store
[[gnu::always_inline]] static inline uint8_t store_e4m3(float x) {
  const uint32_t code = small_store<3, 7, 8, 0x43e00000u>(x);  // 448
  return (uint8_t)(x != x ? 0x7fu : code);
}

//@ round_e4m3: small_round
[[gnu::always_inline]] static inline float round_e4m3(float x) {
  const float y = small_round<3, 7, 0x43e00000u>(x);
  return x != x ? x : y;
}

//@ load_e5m2: load_f16
[[gnu::always_inline]] static inline float load_e5m2(uint8_t bits) { return load_f16((uint16_t)(bits << 8)); }

//@ store_e5m2: small_store
[[gnu::always_inline]] static inline uint8_t store_e5m2(float x) {
  const uint32_t code = small_store<2, 15, 8, 0x47600000u>(x);  // 57344
  return (uint8_t)(x != x ? 0x7fu : code);
}

// Of a value of the type, which may be infinite: the code behind the largest finite one.
//@ keep_e5m2: bits_of_f32 store_e5m2
[[gnu::always_inline]] static inline uint8_t keep_e5m2(float x) {
  const uint32_t is_infinite = (bits_of_f32(x) & 0x7fffffffu) == 0x7f800000u;
  return (uint8_t)(store_e5m2(x) + is_infinite);
}

//@ round_e5m2: small_round
[[gnu::always_inline]] static inline float round_e5m2(float x) {
  const float y = small_round<2, 15, 0x47600000u>(x);
  return x != x ? x : y;
}

//@ load_e3m4: small_load
[[gnu::always_inline]] static inline float load_e3m4(uint8_t bits) {
  const uint32_t code = bits & 0x7fu, sign = (uint32_t)(bits & 0x80u) << 24;
  const uint32_t special = (code >= 0x70u ? 0x7f800000u : 0u) | (code > 0x70u ? 0x00400000u : 0u);
  return f32_of_bits(bits_of_f32(small_load<4, 3>(code)) | special | sign);
}

// Numbers saturate at 15.5; infinity stays infinity.
//@ store_e3m4: small_store
[[gnu::always_inline]] static inline uint8_t store_e3m4(float x) {
  const uint32_t code = small_store<4, 3, 8, 0x41780000u>(x), infinity = 0x70u | (bits_of_f32(x) >> 24 & 0x80u);
  const uint32_t value = __builtin_fabsf(x) == __builtin_inff() ? infinity : code;
  return (uint8_t)(x != x ? 0x7fu : value);
}

//@ round_e3m4: small_round
[[gnu::always_inline]] static inline float round_e3m4(float x) {
  const float y = small_round<4, 3, 0x41780000u>(x);
  return x - x != 0.0f ? x : y;
}

// Formats of one zero: what would be -0 is NaN.
//@ one_zero_load: small_load
template <int m, int b>
[[gnu::always_inline]] static inline float one_zero_load(uint8_t bits) {
  const uint32_t sign = (uint32_t)(bits & 0x80u) << 24;
  const float x = f32_of_bits(bits_of_f32(small_load<m, b>(bits & 0x7fu)) | sign);
  return bits == 0x80u ? __builtin_nanf("") : x;
}

//@ one_zero_store: small_store
template <int m, int b, uint32_t most>
[[gnu::always_inline]] static inline uint8_t one_zero_store(float x) {
  const uint8_t code = (uint8_t)small_store<m, b, 8, most>(x), value = code == 0x80u ? (uint8_t)0 : code;
  return x != x ? (uint8_t)0x80u : value;
}

//@ one_zero_round: small_round
template <int m, int b, uint32_t most>
[[gnu::always_inline]] static inline float one_zero_round(float x) {
  const float y = small_round<m, b, most>(x) + 0.0f;
  return x != x ? x : y;
}

//@ load_e4m3b11fnuz: one_zero_load
[[gnu::always_inline]] static inline float load_e4m3b11fnuz(uint8_t bits) { return one_zero_load<3, 11>(bits); }

//@ store_e4m3b11fnuz: one_zero_store
[[gnu::always_inline]] static inline uint8_t store_e4m3b11fnuz(float x) {
  return one_zero_store<3, 11, 0x41f00000u>(x);  // 30
}

//@ round_e4m3b11fnuz: one_zero_round
[[gnu::always_inline]] static inline float round_e4m3b11fnuz(float x) { return one_zero_round<3, 11, 0x41f00000u>(x); }

//@ load_e4m3fnuz: one_zero_load
[[gnu::always_inline]] static inline float load_e4m3fnuz(uint8_t bits) { return one_zero_load<3, 8>(bits); }

//@ store_e4m3fnuz: one_zero_store
[[gnu::always_inline]] static inline uint8_t store_e4m3fnuz(float x) {
  return one_zero_store<3, 8, 0x43700000u>(x);  // 240
}

//@ round_e4m3fnuz: one_zero_round
[[gnu::always_inline]] static inline float round_e4m3fnuz(float x) { return one_zero_round<3, 8, 0x43700000u>(x); }

//@ load_e5m2fnuz: one_zero_load
[[gnu::always_inline]] static inline float load_e5m2fnuz(uint8_t bits) { return one_zero_load<2, 16>(bits); }

//@ store_e5m2fnuz: one_zero_store
[[gnu::always_inline]] static inline uint8_t store_e5m2fnuz(float x) {
  return one_zero_store<2, 16, 0x47600000u>(x);  // 57344
}

//@ round_e5m2fnuz: one_zero_round
[[gnu::always_inline]] static inline float round_e5m2fnuz(float x) { return one_zero_round<2, 16, 0x47600000u>(x); }

//@ load_e2m3: small_load
[[gnu::always_inline]] static inline float load_e2m3(uint8_t bits) {
  return f32_of_bits(bits_of_f32(small_load<3, 1>(bits & 31u)) | (uint32_t)(bits & 32u) << 26);
}

// Six bits have no NaN either: it takes the largest value, as in fp4.
//@ store_e2m3: small_store
[[gnu::always_inline]] static inline uint8_t store_e2m3(float x) {
  const uint32_t code = small_store<3, 1, 6, 0x40f00000u>(x);  // 7.5
  return (uint8_t)(x != x ? 31u : code & 63u);
}

//@ round_e2m3: small_round
[[gnu::always_inline]] static inline float round_e2m3(float x) {
  const float y = small_round<3, 1, 0x40f00000u>(x);
  return x != x ? 7.5f : y;
}

//@ load_e3m2: small_load
[[gnu::always_inline]] static inline float load_e3m2(uint8_t bits) {
  return f32_of_bits(bits_of_f32(small_load<2, 3>(bits & 31u)) | (uint32_t)(bits & 32u) << 26);
}

//@ store_e3m2: small_store
[[gnu::always_inline]] static inline uint8_t store_e3m2(float x) {
  const uint32_t code = small_store<2, 3, 6, 0x41e00000u>(x);  // 28
  return (uint8_t)(x != x ? 31u : code & 63u);
}

//@ round_e3m2: small_round
[[gnu::always_inline]] static inline float round_e3m2(float x) {
  const float y = small_round<2, 3, 0x41e00000u>(x);
  return x != x ? 28.0f : y;
}

//@ load_e2m1: small_load
[[gnu::always_inline]] static inline float load_e2m1(uint8_t bits) {
  return f32_of_bits(bits_of_f32(small_load<1, 1>(bits & 7u)) | (uint32_t)(bits & 8u) << 28);
}

//@ store_e2m1: small_store
[[gnu::always_inline]] static inline uint8_t store_e2m1(float x) {
  const uint32_t code = small_store<1, 1, 4, 0x40c00000u>(x);  // 6
  return (uint8_t)(x != x ? 7u : code);
}

//@ round_e2m1: small_round
[[gnu::always_inline]] static inline float round_e2m1(float x) {
  const float y = small_round<1, 1, 0x40c00000u>(x);
  return x != x ? 6.0f : y;
}

// e8m0 holds 2^(bits - 127). It has no sign and no zero: the magnitude is converted, 0 becomes 2^-127, and what is
// above 2^127 becomes 2^127 (cvt.rp.satfinite.ue8m0x2). The default rounds up, as scales must not overflow their block.
//@ load_e8m0: f32_of_bits
[[gnu::always_inline]] static inline float load_e8m0(uint8_t bits) {
  const uint32_t normal = (uint32_t)bits << 23;
  return f32_of_bits(bits == 0 ? 0x00400000u : bits == 255 ? 0x7fc00000u : normal);
}

//@ store_e8m0: bits_of_f32
[[gnu::always_inline]] static inline uint8_t store_e8m0(float x) {
  const uint32_t a = bits_of_f32(x) & 0x7fffffffu;
  const uint32_t up = a <= 0x00400000u ? 0u : (a + 0x7fffffu) >> 23;
  return (uint8_t)(x != x ? 255u : up < 254u ? up : 254u);
}

//@ store_e8m0_rz: bits_of_f32
[[gnu::always_inline]] static inline uint8_t store_e8m0_rz(float x) {
  const uint32_t down = (bits_of_f32(x) & 0x7fffffffu) >> 23;
  return (uint8_t)(x != x ? 255u : down < 254u ? down : 254u);
}

//@ round_e8m0: load_e8m0 store_e8m0
[[gnu::always_inline]] static inline float round_e8m0(float x) { return load_e8m0(store_e8m0(x)); }

//@ round_e8m0_rz: load_e8m0 store_e8m0_rz
[[gnu::always_inline]] static inline float round_e8m0_rz(float x) { return load_e8m0(store_e8m0_rz(x)); }

// Toward zero: what is finite stays finite.
//@ round_f16_rz: small_store_rs load_f16 sign_of_f32
[[gnu::always_inline]] static inline float round_f16_rz(float x) {
  const uint32_t code = small_store_rs<10, 15, 13>(x, 0), sign = sign_of_f32(x);
  const float y = f32_of_bits(bits_of_f32(load_f16((uint16_t)(code < 0x7bffu ? code : 0x7bffu))) | sign);
  return x - x != 0.0f ? x : y;
}

// The test for NaN is on the bits: GCC 12 folds `x != x ? x : f32_of_bits(bits_of_f32(x) & mask)` to x.
//@ round_bf16_rz: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float round_bf16_rz(float x) {
  const uint32_t bits = bits_of_f32(x), quiet = (bits & 0x7fffffffu) > 0x7f800000u ? 0x00400000u : 0u;
  return f32_of_bits((bits & 0xffff0000u) | quiet);
}

//@ round_tf32_rz: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float round_tf32_rz(float x) {
  const uint32_t bits = bits_of_f32(x), quiet = (bits & 0x7fffffffu) > 0x7f800000u ? 0x00400000u : 0u;
  return f32_of_bits((bits & 0xffffe000u) | quiet);
}

// Stochastic: 13 random bits for f16, 16 for bf16 and fp8, 8 for fp4, as cvt.rs takes them.
//@ round_f16_rs: small_store_rs load_f16 sign_of_f32
[[gnu::always_inline]] static inline float round_f16_rs(float x, uint32_t random) {
  const uint32_t code = small_store_rs<10, 15, 13>(x, random), sign = sign_of_f32(x);
  const float y = f32_of_bits(bits_of_f32(load_f16((uint16_t)(code < 0x7c00u ? code : 0x7c00u))) | sign);
  return x != x ? x : y;
}

//@ round_bf16_rs: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float round_bf16_rs(float x, uint32_t random) {
  const uint32_t bits = bits_of_f32(x), finite = (bits + (random & 0xffffu)) & 0xffff0000u;
  return x - x != 0.0f ? x : f32_of_bits(finite);
}

//@ round_e4m3_rs: small_store_rs load_e4m3 sign_of_f32
[[gnu::always_inline]] static inline float round_e4m3_rs(float x, uint32_t random) {
  const uint32_t code = small_store_rs<3, 7, 16>(x, random), sign = sign_of_f32(x);
  const float y = f32_of_bits(bits_of_f32(load_e4m3((uint8_t)(code < 0x7eu ? code : 0x7eu))) | sign);
  return x != x ? x : y;
}

//@ round_e5m2_rs: small_store_rs load_e5m2 sign_of_f32
[[gnu::always_inline]] static inline float round_e5m2_rs(float x, uint32_t random) {
  const uint32_t code = small_store_rs<2, 15, 16>(x, random), sign = sign_of_f32(x);
  const float y = f32_of_bits(bits_of_f32(load_e5m2((uint8_t)(code < 0x7bu ? code : 0x7bu))) | sign);
  return x != x ? x : y;
}

//@ round_e2m1_rs: small_store_rs load_e2m1 sign_of_f32
[[gnu::always_inline]] static inline float round_e2m1_rs(float x, uint32_t random) {
  const uint32_t code = small_store_rs<1, 1, 8>(x, random), sign = sign_of_f32(x);
  const float y = f32_of_bits(bits_of_f32(load_e2m1((uint8_t)(code < 7u ? code : 7u))) | sign);
  return x != x ? 6.0f : y;
}

// Double to float, rounded to odd: an inexact result takes the neighbour whose last bit is 1. Rounding that to a format
// with at least two bits less gives the correctly rounded double (Boldo and Melquiond, "When double rounding is odd").
//@ odd_f64: bits_of_f32 f32_of_bits
[[gnu::always_inline]] static inline float odd_f64(double x) {
  const float nearest = (float)x;
  const double back = nearest;
  const uint32_t bits = bits_of_f32(nearest);
  const uint32_t other = __builtin_fabs(x) > __builtin_fabs(back) ? bits + 1 : bits - 1;
  return (back == x) | (x != x) | ((bits & 1) != 0) ? nearest : f32_of_bits(other);
}

// 64-bit integers to double: exact below 2^53 in magnitude, else rounded to odd at the lowest bit that a double holds
// of the largest: bit 10 of those with a sign, bit 11 of those without.
//@ odd_int64: types
[[gnu::always_inline]] static inline double odd_int64(int64_t x) {
  const bool exact = (x < ((int64_t)1 << 53)) & (x > -((int64_t)1 << 53));
  return exact ? (double)x : (double)((x & ~(int64_t)2047) | ((x & 2047) != 0 ? 1024 : 0));
}

//@ odd_uint64: types
[[gnu::always_inline]] static inline double odd_uint64(uint64_t x) {
  return x < ((uint64_t)1 << 53) ? (double)x : (double)((x & ~(uint64_t)4095) | ((x & 4095) != 0 ? 2048u : 0u));
}

// 32-bit integers to float: exact below 2^24 in magnitude, else rounded to odd at the lowest bit that a float holds of
// the largest: bit 7 of those with a sign, bit 8 of those without. What is left has 17 digits or more.
//@ odd_int32: types
[[gnu::always_inline]] static inline float odd_int32(int32_t x) {
  const bool exact = (x < (1 << 24)) & (x > -(1 << 24));
  return (float)(exact ? x : (x & ~255) | ((x & 255) != 0 ? 128 : 0));
}

//@ odd_uint32: types
[[gnu::always_inline]] static inline float odd_uint32(uint32_t x) {
  return (float)(x < (1u << 24) ? x : (x & ~511u) | ((x & 511u) != 0 ? 256u : 0u));
}

// Float to integer truncates; what is out of range clamps (PTX cvt.rzi). NaN gives 0, but the value with only the top
// bit set if the source is double or the result has 64 bits (PTX ISA 9.7.9.21, integer notes). The clamp comes before
// the conversion, so that a vectorized loop never converts what C leaves undefined.
//@ int_of_float: types
template <class T, class F>
[[gnu::always_inline]] static inline T int_of_float(F x) {
  constexpr bool is_signed = (T)-1 < (T)0;
  constexpr int digits = 8 * (int)sizeof(T) - (is_signed ? 1 : 0), precision = sizeof(F) == 4 ? 24 : 53;
  constexpr F above = (F)((uint64_t)1 << (digits - 1)) * 2;
  constexpr F most = above - (digits > precision ? (F)((uint64_t)1 << ((digits - precision) & 63)) : (F)1);
  constexpr F least = is_signed ? -above : (F)0;
  constexpr bool nan_is_zero = sizeof(F) == 4 && sizeof(T) < 8;
  constexpr T largest = (T)(~(uint64_t)0 >> (64 - digits)), top = (T)((uint64_t)1 << (8 * sizeof(T) - 1));
  F y = x == x ? x : (F)0;
  y = y < least ? least : y;
  y = y > most ? most : y;
  T result;
  if constexpr (sizeof(T) < 4)
    result = (T)(int32_t)y;
  else
    result = (T)y;
  if constexpr (digits > precision) result = x >= above ? largest : result;
  if constexpr (!nan_is_zero) result = x == x ? result : top;
  return result;
}

//@ i4_of_f32: types
[[gnu::always_inline]] static inline int8_t i4_of_f32(float x) {
  float y = x == x ? x : 0.0f;
  y = y < -8.0f ? -8.0f : y;
  return (int8_t)(int32_t)(y > 7.0f ? 7.0f : y);
}

//@ u4_of_f32: types
[[gnu::always_inline]] static inline uint8_t u4_of_f32(float x) {
  float y = x == x ? x : 0.0f;
  y = y < 0.0f ? 0.0f : y;
  return (uint8_t)(int32_t)(y > 15.0f ? 15.0f : y);
}

//@ i4_of_f64: types
[[gnu::always_inline]] static inline int8_t i4_of_f64(double x) {
  double y = x == x ? x : -8.0;
  y = y < -8.0 ? -8.0 : y;
  return (int8_t)(int32_t)(y > 7.0 ? 7.0 : y);
}

//@ u4_of_f64: types
[[gnu::always_inline]] static inline uint8_t u4_of_f64(double x) {
  double y = x == x ? x : 8.0;
  y = y < 0.0 ? 0.0 : y;
  return (uint8_t)(int32_t)(y > 15.0 ? 15.0 : y);
}
