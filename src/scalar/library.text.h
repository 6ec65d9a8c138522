// The functions that go through the C library: _f64 as it computes them, _f32 through double, rounded once.

//@ log1p_f64:
[[gnu::always_inline]] static inline double log1p_f64(double x) { return __builtin_log1p(x); }

//@ expm1_f64:
[[gnu::always_inline]] static inline double expm1_f64(double x) { return __builtin_expm1(x); }

//@ sin_f64:
[[gnu::always_inline]] static inline double sin_f64(double x) { return __builtin_sin(x); }

//@ cos_f64:
[[gnu::always_inline]] static inline double cos_f64(double x) { return __builtin_cos(x); }

//@ tan_f64:
[[gnu::always_inline]] static inline double tan_f64(double x) { return __builtin_tan(x); }

//@ asin_f32:
[[gnu::always_inline]] static inline float asin_f32(float x) { return (float)__builtin_asin(x); }

//@ asin_f64:
[[gnu::always_inline]] static inline double asin_f64(double x) { return __builtin_asin(x); }

//@ acos_f32:
[[gnu::always_inline]] static inline float acos_f32(float x) { return (float)__builtin_acos(x); }

//@ acos_f64:
[[gnu::always_inline]] static inline double acos_f64(double x) { return __builtin_acos(x); }

//@ atan_f32:
[[gnu::always_inline]] static inline float atan_f32(float x) { return (float)__builtin_atan(x); }

//@ atan_f64:
[[gnu::always_inline]] static inline double atan_f64(double x) { return __builtin_atan(x); }

//@ sinh_f32:
[[gnu::always_inline]] static inline float sinh_f32(float x) { return (float)__builtin_sinh(x); }

//@ sinh_f64:
[[gnu::always_inline]] static inline double sinh_f64(double x) { return __builtin_sinh(x); }

//@ cosh_f32:
[[gnu::always_inline]] static inline float cosh_f32(float x) { return (float)__builtin_cosh(x); }

//@ cosh_f64:
[[gnu::always_inline]] static inline double cosh_f64(double x) { return __builtin_cosh(x); }

//@ asinh_f32:
[[gnu::always_inline]] static inline float asinh_f32(float x) { return (float)__builtin_asinh(x); }

//@ asinh_f64:
[[gnu::always_inline]] static inline double asinh_f64(double x) { return __builtin_asinh(x); }

//@ acosh_f32:
[[gnu::always_inline]] static inline float acosh_f32(float x) { return (float)__builtin_acosh(x); }

//@ acosh_f64:
[[gnu::always_inline]] static inline double acosh_f64(double x) { return __builtin_acosh(x); }

//@ atanh_f32:
[[gnu::always_inline]] static inline float atanh_f32(float x) { return (float)__builtin_atanh(x); }

//@ atanh_f64:
[[gnu::always_inline]] static inline double atanh_f64(double x) { return __builtin_atanh(x); }

// Squares of floats are exact in double, and their sum is in its range.
//@ hypot_f32:
[[gnu::always_inline]] static inline float hypot_f32(float a, float b) {
  const double x = a, y = b, inf = __builtin_inf();
  const double length = __builtin_sqrt(x * x + y * y);
  return (float)((__builtin_fabs(x) == inf) | (__builtin_fabs(y) == inf) ? inf : length);
}

//@ hypot_f64:
[[gnu::always_inline]] static inline double hypot_f64(double a, double b) { return __builtin_hypot(a, b); }

//@ pow_f32:
[[gnu::always_inline]] static inline float pow_f32(float a, float b) { return (float)__builtin_pow(a, b); }

//@ pow_f64:
[[gnu::always_inline]] static inline double pow_f64(double a, double b) { return __builtin_pow(a, b); }

//@ atan2_f32:
[[gnu::always_inline]] static inline float atan2_f32(float a, float b) { return (float)__builtin_atan2(a, b); }

//@ atan2_f64:
[[gnu::always_inline]] static inline double atan2_f64(double a, double b) { return __builtin_atan2(a, b); }

//@ exp_f64:
[[gnu::always_inline]] static inline double exp_f64(double x) { return __builtin_exp(x); }

//@ exp2_f64:
[[gnu::always_inline]] static inline double exp2_f64(double x) { return __builtin_exp2(x); }

//@ log_f64:
[[gnu::always_inline]] static inline double log_f64(double x) { return __builtin_log(x); }

//@ log2_f64:
[[gnu::always_inline]] static inline double log2_f64(double x) { return __builtin_log2(x); }

//@ log10_f64:
[[gnu::always_inline]] static inline double log10_f64(double x) { return __builtin_log10(x); }

//@ tanh_f64:
[[gnu::always_inline]] static inline double tanh_f64(double x) { return __builtin_tanh(x); }

//@ erf_f64:
[[gnu::always_inline]] static inline double erf_f64(double x) { return __builtin_erf(x); }

//@ exp10_f64:
[[gnu::always_inline]] static inline double exp10_f64(double x) { return __builtin_pow(10.0, x); }

//@ rsqrt_f64:
[[gnu::always_inline]] static inline double rsqrt_f64(double x) { return 1.0 / __builtin_sqrt(x); }

//@ sigmoid_f64:
[[gnu::always_inline]] static inline double sigmoid_f64(double x) {
  const double z = __builtin_exp(-__builtin_fabs(x));
  return (x < 0.0 ? z : 1.0) / (1.0 + z);
}

//@ rsqrt_rn_f64:
[[gnu::always_inline]] static inline double rsqrt_rn_f64(double x) { return 1.0 / __builtin_sqrt(x); }
