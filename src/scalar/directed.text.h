// Sums, products, quotients and roots rounded toward zero (rz), up (ru) and down (rd): the result to nearest, and the
// step from it that the sign of its error asks for, which a type of more than twice the digits holds.

// What a result of the rounding to nearest becomes in another direction (0: toward zero, 1: up, -1: down), where `rest`
// has the sign of what the exact result is above it, and is NaN where nothing was rounded.
//@ directed_f32: bits_of_f32 f32_of_bits
template <int direction>
[[gnu::always_inline]] static inline float directed_f32(float y, double rest) {
  const bool up = rest > 0.0, down = rest < 0.0;
  const bool inward = ((direction <= 0) & down & (y > 0.0f)) | ((direction >= 0) & up & (y < 0.0f));
  const bool outward = ((direction > 0) & up & (y >= 0.0f)) | ((direction < 0) & down & (y <= 0.0f));
  const uint32_t bits = bits_of_f32(y), from_zero = direction < 0 ? 0x80000001u : 1u;
  const uint32_t grown = y == 0.0f ? from_zero : bits + 1u;
  return f32_of_bits(inward ? bits - 1u : outward ? grown : bits);
}

//@ directed_f64: bits_of_f64 f64_of_bits
template <int direction>
[[gnu::always_inline]] static inline double directed_f64(double y, double rest) {
  const bool up = rest > 0.0, down = rest < 0.0;
  const bool inward = ((direction <= 0) & down & (y > 0.0)) | ((direction >= 0) & up & (y < 0.0));
  const bool outward = ((direction > 0) & up & (y >= 0.0)) | ((direction < 0) & down & (y <= 0.0));
  const uint64_t bits = bits_of_f64(y), from_zero = direction < 0 ? 0x8000000000000001u : 1u;
  const uint64_t grown = y == 0.0 ? from_zero : bits + 1u;
  return f64_of_bits(inward ? bits - 1u : outward ? grown : bits);
}

// Holds products of doubles exactly.
//@ wide_f64:
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 wide_f64;
#else
typedef long double wide_f64;
#endif

//@ sign_of_wide: wide_f64
[[gnu::always_inline]] static inline double sign_of_wide(wide_f64 x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; }

// a + b where F holds what is computed in: its rounding error is a number too (Knuth's sum of two). Where the exact sum
// is zero its sign is the direction's.
//@ directed_sum:
template <int direction, class Wide, class F, class Round>
[[gnu::always_inline]] static inline F directed_sum(Wide a, Wide b, Round round) {
  const Wide sum = a + b, part = sum - a, error = (a - (sum - part)) + (b - part);
  const F y = (F)sum;
  const Wide rest = (sum - (Wide)y) + error;
  const bool negative = (__builtin_signbit((F)a) | __builtin_signbit((F)b)) != 0;
  return (direction < 0) & (sum == 0) & negative ? (F)-0.0 : round(y, rest > 0 ? 1.0 : rest < 0 ? -1.0 : 0.0);
}

//@ add_rz_f32: directed_f32 directed_sum
[[gnu::always_inline]] static inline float add_rz_f32(float a, float b) {
  return directed_sum<0, double, float>((double)a, (double)b, directed_f32<0>);
}

//@ add_rz_f64: directed_f64 directed_sum wide_f64
[[gnu::always_inline]] static inline double add_rz_f64(double a, double b) {
  return directed_sum<0, wide_f64, double>((wide_f64)a, (wide_f64)b, directed_f64<0>);
}

//@ mul_rz_f32: directed_f32
[[gnu::always_inline]] static inline float mul_rz_f32(float a, float b) {
  const double exact = (double)a * (double)b;
  return directed_f32<0>((float)exact, exact - (double)(float)exact);
}

//@ mul_rz_f64: directed_f64 wide_f64 sign_of_wide
[[gnu::always_inline]] static inline double mul_rz_f64(double a, double b) {
  const wide_f64 exact = (wide_f64)a * (wide_f64)b;
  return directed_f64<0>((double)exact, sign_of_wide(exact - (wide_f64)(double)exact));
}

//@ div_rz_f32: directed_f32
[[gnu::always_inline]] static inline float div_rz_f32(float a, float b) {
  const float y = a / b;
  return directed_f32<0>(y, ((double)a - (double)y * (double)b) * (double)b);
}

//@ div_rz_f64: directed_f64 wide_f64 sign_of_wide
[[gnu::always_inline]] static inline double div_rz_f64(double a, double b) {
  const double y = a / b;
  return directed_f64<0>(y, sign_of_wide(((wide_f64)a - (wide_f64)y * (wide_f64)b) * (wide_f64)b));
}

//@ fma_rz_f32: directed_f32 directed_sum
[[gnu::always_inline]] static inline float fma_rz_f32(float a, float b, float c) {
  return directed_sum<0, double, float>((double)a * (double)b, (double)c, directed_f32<0>);
}

//@ fma_rz_f64: directed_f64 directed_sum wide_f64
[[gnu::always_inline]] static inline double fma_rz_f64(double a, double b, double c) {
  return directed_sum<0, wide_f64, double>((wide_f64)a * (wide_f64)b, (wide_f64)c, directed_f64<0>);
}

//@ sqrt_rz_f32: directed_f32
[[gnu::always_inline]] static inline float sqrt_rz_f32(float x) {
  const float y = __builtin_sqrtf(x);
  return directed_f32<0>(y, (double)x - (double)y * (double)y);
}

//@ sqrt_rz_f64: directed_f64 wide_f64 sign_of_wide
[[gnu::always_inline]] static inline double sqrt_rz_f64(double x) {
  const double y = __builtin_sqrt(x);
  return directed_f64<0>(y, sign_of_wide((wide_f64)x - (wide_f64)y * (wide_f64)y));
}

//@ add_ru_f32: directed_f32 directed_sum
[[gnu::always_inline]] static inline float add_ru_f32(float a, float b) {
  return directed_sum<1, double, float>((double)a, (double)b, directed_f32<1>);
}

//@ add_ru_f64: directed_f64 directed_sum wide_f64
[[gnu::always_inline]] static inline double add_ru_f64(double a, double b) {
  return directed_sum<1, wide_f64, double>((wide_f64)a, (wide_f64)b, directed_f64<1>);
}

//@ mul_ru_f32: directed_f32
[[gnu::always_inline]] static inline float mul_ru_f32(float a, float b) {
  const double exact = (double)a * (double)b;
  return directed_f32<1>((float)exact, exact - (double)(float)exact);
}

//@ mul_ru_f64: directed_f64 wide_f64 sign_of_wide
[[gnu::always_inline]] static inline double mul_ru_f64(double a, double b) {
  const wide_f64 exact = (wide_f64)a * (wide_f64)b;
  return directed_f64<1>((double)exact, sign_of_wide(exact - (wide_f64)(double)exact));
}

//@ div_ru_f32: directed_f32
[[gnu::always_inline]] static inline float div_ru_f32(float a, float b) {
  const float y = a / b;
  return directed_f32<1>(y, ((double)a - (double)y * (double)b) * (double)b);
}

//@ div_ru_f64: directed_f64 wide_f64 sign_of_wide
[[gnu::always_inline]] static inline double div_ru_f64(double a, double b) {
  const double y = a / b;
  return directed_f64<1>(y, sign_of_wide(((wide_f64)a - (wide_f64)y * (wide_f64)b) * (wide_f64)b));
}

//@ fma_ru_f32: directed_f32 directed_sum
[[gnu::always_inline]] static inline float fma_ru_f32(float a, float b, float c) {
  return directed_sum<1, double, float>((double)a * (double)b, (double)c, directed_f32<1>);
}

//@ fma_ru_f64: directed_f64 directed_sum wide_f64
[[gnu::always_inline]] static inline double fma_ru_f64(double a, double b, double c) {
  return directed_sum<1, wide_f64, double>((wide_f64)a * (wide_f64)b, (wide_f64)c, directed_f64<1>);
}

//@ sqrt_ru_f32: directed_f32
[[gnu::always_inline]] static inline float sqrt_ru_f32(float x) {
  const float y = __builtin_sqrtf(x);
  return directed_f32<1>(y, (double)x - (double)y * (double)y);
}

//@ sqrt_ru_f64: directed_f64 wide_f64 sign_of_wide
[[gnu::always_inline]] static inline double sqrt_ru_f64(double x) {
  const double y = __builtin_sqrt(x);
  return directed_f64<1>(y, sign_of_wide((wide_f64)x - (wide_f64)y * (wide_f64)y));
}

//@ add_rd_f32: directed_f32 directed_sum
[[gnu::always_inline]] static inline float add_rd_f32(float a, float b) {
  return directed_sum<-1, double, float>((double)a, (double)b, directed_f32<-1>);
}

//@ add_rd_f64: directed_f64 directed_sum wide_f64
[[gnu::always_inline]] static inline double add_rd_f64(double a, double b) {
  return directed_sum<-1, wide_f64, double>((wide_f64)a, (wide_f64)b, directed_f64<-1>);
}

//@ mul_rd_f32: directed_f32
[[gnu::always_inline]] static inline float mul_rd_f32(float a, float b) {
  const double exact = (double)a * (double)b;
  return directed_f32<-1>((float)exact, exact - (double)(float)exact);
}

//@ mul_rd_f64: directed_f64 wide_f64 sign_of_wide
[[gnu::always_inline]] static inline double mul_rd_f64(double a, double b) {
  const wide_f64 exact = (wide_f64)a * (wide_f64)b;
  return directed_f64<-1>((double)exact, sign_of_wide(exact - (wide_f64)(double)exact));
}

//@ div_rd_f32: directed_f32
[[gnu::always_inline]] static inline float div_rd_f32(float a, float b) {
  const float y = a / b;
  return directed_f32<-1>(y, ((double)a - (double)y * (double)b) * (double)b);
}

//@ div_rd_f64: directed_f64 wide_f64 sign_of_wide
[[gnu::always_inline]] static inline double div_rd_f64(double a, double b) {
  const double y = a / b;
  return directed_f64<-1>(y, sign_of_wide(((wide_f64)a - (wide_f64)y * (wide_f64)b) * (wide_f64)b));
}

//@ fma_rd_f32: directed_f32 directed_sum
[[gnu::always_inline]] static inline float fma_rd_f32(float a, float b, float c) {
  return directed_sum<-1, double, float>((double)a * (double)b, (double)c, directed_f32<-1>);
}

//@ fma_rd_f64: directed_f64 directed_sum wide_f64
[[gnu::always_inline]] static inline double fma_rd_f64(double a, double b, double c) {
  return directed_sum<-1, wide_f64, double>((wide_f64)a * (wide_f64)b, (wide_f64)c, directed_f64<-1>);
}

//@ sqrt_rd_f32: directed_f32
[[gnu::always_inline]] static inline float sqrt_rd_f32(float x) {
  const float y = __builtin_sqrtf(x);
  return directed_f32<-1>(y, (double)x - (double)y * (double)y);
}

//@ sqrt_rd_f64: directed_f64 wide_f64 sign_of_wide
[[gnu::always_inline]] static inline double sqrt_rd_f64(double x) {
  const double y = __builtin_sqrt(x);
  return directed_f64<-1>(y, sign_of_wide((wide_f64)x - (wide_f64)y * (wide_f64)y));
}
