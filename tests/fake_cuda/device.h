// CUDA's words on a host, for texts that fake_nvrtc's sibling host_nvrtc.cpp compiles with the host's compiler: what a
// kernel is made of beside plain C++, and our own functions that are PTX on a device. Threads are coroutines, copies
// are there as soon as they are asked for, and what is undefined in C++ is told as a failure of the launch.
#pragma once
#include "host_thread.h"

// A kernel's text has these types itself, and reading the C++ library takes longer than all the rest.
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
extern "C" {
void* memcpy(void*, const void*, unsigned long) noexcept;
void* memset(void*, int, unsigned long) noexcept;
unsigned long strlen(const char*) noexcept;
int strcmp(const char*, const char*) noexcept;
int strncmp(const char*, const char*, unsigned long) noexcept;
const char* strchr(const char*, int) noexcept;
const char* strstr(const char*, const char*) noexcept;
int snprintf(char*, unsigned long, const char*, ...) noexcept;
int sscanf(const char*, const char*, ...) noexcept;
int fesetround(int) noexcept;
#define TW_FUNCTION(name)       \
  double name(double) noexcept; \
  float name##f(float) noexcept
#define TW_FUNCTION_OF_TWO(name)        \
  double name(double, double) noexcept; \
  float name##f(float, float) noexcept
TW_FUNCTION(floor);
TW_FUNCTION(ceil);
TW_FUNCTION(trunc);
TW_FUNCTION(rint);
TW_FUNCTION(nearbyint);
TW_FUNCTION(round);
TW_FUNCTION(fabs);
TW_FUNCTION(sqrt);
TW_FUNCTION(exp);
TW_FUNCTION(exp2);
TW_FUNCTION(expm1);
TW_FUNCTION(log);
TW_FUNCTION(log2);
TW_FUNCTION(log10);
TW_FUNCTION(log1p);
TW_FUNCTION(sin);
TW_FUNCTION(cos);
TW_FUNCTION(tan);
TW_FUNCTION(asin);
TW_FUNCTION(acos);
TW_FUNCTION(atan);
TW_FUNCTION(sinh);
TW_FUNCTION(cosh);
TW_FUNCTION(tanh);
TW_FUNCTION(asinh);
TW_FUNCTION(acosh);
TW_FUNCTION(atanh);
TW_FUNCTION(erf);
TW_FUNCTION(cbrt);
TW_FUNCTION(exp10);
TW_FUNCTION_OF_TWO(fmax);
TW_FUNCTION_OF_TWO(fmin);
TW_FUNCTION_OF_TWO(fmod);
TW_FUNCTION_OF_TWO(pow);
TW_FUNCTION_OF_TWO(atan2);
TW_FUNCTION_OF_TWO(hypot);
TW_FUNCTION_OF_TWO(copysign);
TW_FUNCTION_OF_TWO(nextafter);
double ldexp(double, int) noexcept;
float ldexpf(float, int) noexcept;
int ilogb(double) noexcept;
double fma(double, double, double) noexcept;
float fmaf(float, float, float) noexcept;
}
constexpr int FE_TONEAREST = 0, FE_DOWNWARD = 0x400, FE_UPWARD = 0x800, FE_TOWARDZERO = 0xc00;
constexpr float kNan = __builtin_nanf(""), kInfinity = __builtin_inff();
inline bool isfinite(double x) { return __builtin_isfinite(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isnan(double x) { return __builtin_isnan(x); }

#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

extern "C" {
HostThread* tw_thread;
const HostCalls* tw_calls;
extern const char* const tw_text;  // of the kernels
}
#define threadIdx (tw_thread->thread)
#define blockIdx (tw_thread->block)
#define blockDim (tw_thread->threads)
#define gridDim (tw_thread->blocks)

struct alignas(8) uint2 {
  unsigned x, y;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

// ---- what is undefined in C++ (the handlers that -fsanitize calls)

struct HostPlace {
  const char* file;
  unsigned line, column;
};
struct HostType {
  unsigned short kind, info;
  char name[1];
};
inline void tw_fault(const HostPlace& at, const char* what) {
  const char* text = tw_text;
  for (unsigned i = 1; i < at.line && text; ++i) text = strchr(text, '\n') ? strchr(text, '\n') + 1 : nullptr;
  const int length = text && strchr(text, '\n') ? (int)(strchr(text, '\n') - text) : 0;
  char out[2048];
  snprintf(out, sizeof out, "%s at %s:%u:%u: %.*s", what, at.file, at.line, at.column, length, text);
  tw_calls->fault(out);
}
inline long long tw_value(const HostType* type, const void* value) {
  if (type->kind != 0) return 0;
  const int bits = 1 << (type->info >> 1);
  if (bits > 64) return 0;
  const unsigned long long word = (unsigned long long)value << (64 - bits);
  return type->info & 1 ? (long long)word >> (64 - bits) : (long long)(word >> (64 - bits));
}
struct HostOverflow {
  HostPlace at;
  const HostType* type;
};
struct HostShift {
  HostPlace at;
  const HostType *left, *right;
};
struct HostCast {
  HostPlace at;
  const HostType *from, *to;
};
struct HostBounds {
  HostPlace at;
  const HostType *array, *index;
};
struct HostAlignment {
  HostPlace at;
  const HostType* type;
  unsigned char log_alignment, kind;
};
#define TW_OVERFLOW(operation, op)                                                                           \
  extern "C" [[gnu::used]] inline void __ubsan_handle_##operation##_overflow(void* data, void* a, void* b) { \
    const auto* d = (const HostOverflow*)data;                                                               \
    char out[256];                                                                                           \
    snprintf(out, sizeof out, "%lld " op " %lld is no %s", tw_value(d->type, a), tw_value(d->type, b),       \
             (d->type)->name);                                                                               \
    tw_fault(d->at, out);                                                                                    \
  }
TW_OVERFLOW(add, "+")
TW_OVERFLOW(sub, "-")
TW_OVERFLOW(mul, "*")
TW_OVERFLOW(divrem, "/")
extern "C" [[gnu::used]] inline void __ubsan_handle_negate_overflow(void* data, void* a) {
  const auto* d = (const HostOverflow*)data;
  char out[256];
  snprintf(out, sizeof out, "-(%lld) is no %s", tw_value(d->type, a), d->type->name);
  tw_fault(d->at, out);
}
extern "C" [[gnu::used]] inline void __ubsan_handle_shift_out_of_bounds(void* data, void* a, void* b) {
  const auto* d = (const HostShift*)data;
  char out[256];
  snprintf(out, sizeof out, "%lld is shifted by %lld", tw_value(d->left, a), tw_value(d->right, b));
  tw_fault(d->at, out);
}
extern "C" [[gnu::used]] inline void __ubsan_handle_out_of_bounds(void* data, void* index) {
  const auto* d = (const HostBounds*)data;
  char out[256];
  snprintf(out, sizeof out, "index %lld is beyond %s", tw_value(d->index, index), d->array->name);
  tw_fault(d->at, out);
}
extern "C" [[gnu::used]] inline void __ubsan_handle_float_cast_overflow(void* data, void*) {
  const auto* d = (const HostCast*)data;
  char out[256];
  snprintf(out, sizeof out, "a %s that no %s holds", d->from->name, d->to->name);
  tw_fault(d->at, out);
}
extern "C" [[gnu::used]] inline void __ubsan_handle_type_mismatch_v1(void* data, void* pointer) {
  const auto* d = (const HostAlignment*)data;
  char out[256];
  snprintf(out, sizeof out, "%p is no address of %s", pointer, d->type->name);
  tw_fault(d->at, out);
}

template <class T>
inline T tw_value(T x) {
  return x;
}

// ---- meetings

inline void __syncthreads() { tw_calls->sync(0, 0); }
inline int __syncthreads_count(int holds) { return tw_calls->count(holds != 0); }
inline int __syncthreads_or(int holds) { return tw_calls->count(holds != 0) != 0; }
inline int __syncthreads_and(int holds) { return tw_calls->count(holds == 0) == 0; }
template <int threads>
inline void tw_sync_threads(int barrier) {
  tw_calls->sync(barrier, threads);
}
template <int threads>
inline void tw_arrive_threads(int barrier) {
  tw_calls->arrive(barrier, threads);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) { tw_calls->turn(); }
inline void __trap() { tw_calls->fault("a trap"); }

// ---- lanes of a warp

// What `use` makes of what the lanes of `lanes` bring.
template <class T, class Use>
inline auto tw_among(unsigned lanes, T mine, Use use) {
  void* const* all = tw_calls->exchange(lanes, &mine);
  auto result = use([&](unsigned lane) { return lanes >> lane & 1 ? *(const T*)all[lane] : mine; });
  tw_calls->leave(lanes);
  return result;
}
inline void __syncwarp(unsigned lanes = 0xffffffffu) {
  tw_among(lanes, 0, [](auto) { return 0; });
}
template <class T>
inline T tw_lane_of(unsigned lanes, T mine, bool inside, unsigned lane) {
  return tw_among(lanes, mine, [&](auto of) { return inside ? of(lane & 31u) : mine; });
}
template <class T>
inline T __shfl_sync(unsigned lanes, T x, int lane, int width = 32) {
  const unsigned first = tw_thread->lane & ~(unsigned)(width - 1);
  return tw_lane_of(lanes, x, true, first | ((unsigned)lane & (unsigned)(width - 1)));
}
template <class T>
inline T __shfl_up_sync(unsigned lanes, T x, unsigned by, int width = 32) {
  const unsigned own = tw_thread->lane, first = own & ~(unsigned)(width - 1);
  return tw_lane_of(lanes, x, own >= first + by, own - by);
}
template <class T>
inline T __shfl_down_sync(unsigned lanes, T x, unsigned by, int width = 32) {
  const unsigned own = tw_thread->lane, last = own | (unsigned)(width - 1);
  return tw_lane_of(lanes, x, own + by <= last, own + by);
}
template <class T>
inline T __shfl_xor_sync(unsigned lanes, T x, int bits, int width = 32) {
  const unsigned own = tw_thread->lane, last = own | (unsigned)(width - 1), other = own ^ (unsigned)bits;
  return tw_lane_of(lanes, x, other <= last, other);
}
template <class T, class Join>
inline T tw_joined(unsigned lanes, T mine, Join join) {
  return tw_among(lanes, mine, [&](auto of) {
    T total{};
    bool first = true;
    for (unsigned i = 0; i < 32; ++i)
      if (lanes >> i & 1) total = first ? of(i) : join(total, of(i)), first = false;
    return total;
  });
}
inline unsigned __ballot_sync(unsigned lanes, int holds) {
  return tw_joined(lanes, holds ? 1u << tw_thread->lane : 0u, [](unsigned a, unsigned b) { return a | b; });
}
inline int __any_sync(unsigned lanes, int holds) { return __ballot_sync(lanes, holds) != 0; }
inline int __all_sync(unsigned lanes, int holds) { return __ballot_sync(lanes, holds) == lanes; }
template <class T>
inline unsigned __match_any_sync(unsigned lanes, T x) {
  return tw_among(lanes, x, [&](auto of) {
    unsigned out = 0;
    for (unsigned i = 0; i < 32; ++i)
      if ((lanes >> i & 1) && of(i) == x) out |= 1u << i;
    return out;
  });
}
template <class T>
inline unsigned __match_all_sync(unsigned lanes, T x, int* all) {
  const unsigned same = __match_any_sync(lanes, x);
  return *all = same == lanes, same == lanes ? lanes : 0;
}
template <class T>
inline T __reduce_add_sync(unsigned lanes, T x) {
  return (T)tw_joined(lanes, (unsigned)x, [](unsigned a, unsigned b) { return a + b; });
}
template <class T>
inline T __reduce_min_sync(unsigned lanes, T x) {
  return tw_joined(lanes, x, [](T a, T b) { return b < a ? b : a; });
}
template <class T>
inline T __reduce_max_sync(unsigned lanes, T x) {
  return tw_joined(lanes, x, [](T a, T b) { return a < b ? b : a; });
}
inline unsigned __reduce_and_sync(unsigned lanes, unsigned x) {
  return tw_joined(lanes, x, [](unsigned a, unsigned b) { return a & b; });
}
inline unsigned __reduce_or_sync(unsigned lanes, unsigned x) {
  return tw_joined(lanes, x, [](unsigned a, unsigned b) { return a | b; });
}
inline unsigned __reduce_xor_sync(unsigned lanes, unsigned x) {
  return tw_joined(lanes, x, [](unsigned a, unsigned b) { return a ^ b; });
}
inline bool tw_elect() {
  return tw_among(0xffffffffu, 0, [](auto) { return tw_thread->lane == 0; });
}

// ---- memory

template <class T, class Change>
inline T tw_changed(T* at, Change change) {
  const T old = *at;
  *at = change(old);
  return old;
}
template <class T>
struct HostBits {
  using type = T;
};
template <>
struct HostBits<int> {
  using type = unsigned;
};
template <>
struct HostBits<long long> {
  using type = unsigned long long;
};
#define TW_ATOMIC(name, result)                              \
  template <class T, class V>                                \
  inline T name(T* at, V value) {                            \
    return tw_changed(at, [&](T old) -> T {                  \
      using U [[maybe_unused]] = typename HostBits<T>::type; \
      const T v = (T)value;                                  \
      return (T)(result);                                    \
    });                                                      \
  }
TW_ATOMIC(atomicAdd, (U)old + (U)v)
TW_ATOMIC(atomicMax, old < v ? v : old)
TW_ATOMIC(atomicMin, v < old ? v : old)
TW_ATOMIC(atomicAnd, old& v)
TW_ATOMIC(atomicOr, old | v)
TW_ATOMIC(atomicXor, old ^ v)
TW_ATOMIC(atomicExch, v)
template <class T>
inline T atomicCAS(T* at, T expected, T wanted) {
  return tw_changed(at, [&](T old) { return old == expected ? wanted : old; });
}
inline uint64_t __cvta_generic_to_shared(const void* p) {
  return (uint64_t)((const unsigned char*)p - tw_thread->shared);
}
inline uint64_t __cvta_generic_to_global(const void* p) { return (uint64_t)p; }
inline unsigned char* tw_at_shared(uint64_t place) { return tw_thread->shared + place; }

#define TW_LOADS(type)                                              \
  template <bool constant>                                          \
  inline void tw_load_if(bool inside, type* to, const type* from) { \
    if (inside) *to = *from;                                        \
  }
TW_LOADS(uint8_t)
TW_LOADS(uint16_t)
TW_LOADS(uint32_t)
TW_LOADS(uint2)
TW_LOADS(uint4)
template <class T>
inline void tw_store(T* to, T v) {
  *to = v;
}

// ---- numbers

inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
template <class F>
[[gnu::noinline]] auto tw_rounding(int how, F compute) {
  fesetround(how);
  auto result = compute();
  fesetround(FE_TONEAREST);
  return result;
}
#define TW_DIRECTED(suffix, how)                                        \
  inline float __fadd_##suffix(volatile float a, volatile float b) {    \
    return tw_rounding(how, [&] { return a + b; });                     \
  }                                                                     \
  inline float __fmul_##suffix(volatile float a, volatile float b) {    \
    return tw_rounding(how, [&] { return a * b; });                     \
  }                                                                     \
  inline float __fdiv_##suffix(volatile float a, volatile float b) {    \
    return tw_rounding(how, [&] { return a / b; });                     \
  }                                                                     \
  inline float __fsqrt_##suffix(volatile float a) {                     \
    return tw_rounding(how, [&] { return sqrtf(a); });                  \
  }                                                                     \
  inline float __fmaf_##suffix(float a, float b, float c) {             \
    return tw_rounding(how, [&] { return fmaf(a, b, c); });             \
  }                                                                     \
  inline double __dadd_##suffix(volatile double a, volatile double b) { \
    return tw_rounding(how, [&] { return a + b; });                     \
  }                                                                     \
  inline double __dmul_##suffix(volatile double a, volatile double b) { \
    return tw_rounding(how, [&] { return a * b; });                     \
  }                                                                     \
  inline double __ddiv_##suffix(volatile double a, volatile double b) { \
    return tw_rounding(how, [&] { return a / b; });                     \
  }                                                                     \
  inline double __dsqrt_##suffix(volatile double a) {                   \
    return tw_rounding(how, [&] { return sqrt(a); });                   \
  }                                                                     \
  inline double __fma_##suffix(double a, double b, double c) {          \
    return tw_rounding(how, [&] { return fma(a, b, c); });              \
  }
TW_DIRECTED(rn, FE_TONEAREST)
TW_DIRECTED(rz, FE_TOWARDZERO)
TW_DIRECTED(ru, FE_UPWARD)
TW_DIRECTED(rd, FE_DOWNWARD)
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline unsigned long long __brevll(unsigned long long x) {
  unsigned long long out = 0;
  for (int i = 0; i < 64; ++i) out |= (x >> i & 1) << (63 - i);
  return out;
}
inline unsigned __brev(unsigned x) { return (unsigned)(__brevll(x) >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)((__int128)a * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
template <class T>
inline T mulhi(T a, T b) {
  return (T)((__int128)a * b >> 8 * sizeof(T));
}
inline unsigned __sad(int x, int y, unsigned z) {
  return z + (x < y ? (unsigned)y - (unsigned)x : (unsigned)x - (unsigned)y);
}
inline float rcp_approx_f32(float x) { return 1.0f / x; }
inline float exp2_f32(float x) { return exp2f(x); }
inline float moderate_quotient_f32(float a, float b) { return a / b; }
inline float max_nan_f32(float a, float b) {
  return a != a || b != b ? kNan : a == b ? (__builtin_signbit(a) ? b : a) : a < b ? b : a;
}
inline float min_nan_f32(float a, float b) {
  return a != a || b != b ? kNan : a == b ? (__builtin_signbit(a) ? a : b) : b < a ? b : a;
}
inline bool tw_equal(int x, int y) { return x == y; }
inline int tw_min(int x, int y) { return y < x ? y : x; }
inline int tw_max(int x, int y) { return x < y ? y : x; }
inline int tw_choose(bool first, int x, int y) { return first ? x : y; }
template <int bits>
inline int tw_signed_low(int x) {
  return (int)((unsigned)x << (32 - bits)) >> (32 - bits);
}

// A float of fewer bits: its exponent's and its mantissa's, what its largest number is, and whether it has infinities.
struct HostFloat {
  int exponent, mantissa;
  bool infinite;
  float most;
};
inline unsigned tw_narrow(float x, const HostFloat& t, int how = FE_TONEAREST) {
  const unsigned bits = __float_as_uint(x), sign = bits >> 31 << (t.exponent + t.mantissa),
                 all = (1u << (t.exponent + t.mantissa)) - 1;
  const unsigned infinity = ((1u << t.exponent) - 1) << t.mantissa;
  if (x != x) return t.infinite ? infinity | 1u << (t.mantissa - 1) : sign | all;
  const double magnitude = fabs((double)x);
  if (isinf(x) && t.infinite) return sign | infinity;
  const int bias = (1 << (t.exponent - 1)) - 1;
  int exponent = magnitude == 0 ? 1 - bias : ilogb(magnitude);
  if (exponent < 1 - bias) exponent = 1 - bias;
  const double unit = ldexp(1.0, exponent - t.mantissa);
  fesetround(how == FE_UPWARD && x < 0 ? FE_DOWNWARD : how == FE_DOWNWARD && x < 0 ? FE_UPWARD : how);
  const double rounded = nearbyint(magnitude / unit) * unit;
  fesetround(FE_TONEAREST);
  if (rounded > t.most) {
    if (t.infinite) {
      const bool stays = how == FE_TOWARDZERO || (how == FE_UPWARD && x < 0) || (how == FE_DOWNWARD && x > 0);
      return sign | (infinity - (stays ? 1u : 0u));
    }
    return sign | tw_narrow(t.most, t);
  }
  if (rounded < ldexp(1.0, 1 - bias)) return sign | (unsigned)(rounded / ldexp(1.0, 1 - bias - t.mantissa));
  const int e = ilogb(rounded);
  const unsigned fraction = (unsigned)((rounded / ldexp(1.0, e) - 1) * (1 << t.mantissa));
  return sign | (unsigned)(e + bias) << t.mantissa | fraction;
}
inline float tw_wide(unsigned bits, const HostFloat& t) {
  const unsigned magnitude = bits & ((1u << (t.exponent + t.mantissa)) - 1),
                 fraction = magnitude & ((1u << t.mantissa) - 1);
  const int e = (int)(magnitude >> t.mantissa), bias = (1 << (t.exponent - 1)) - 1;
  float x = e == 0 ? ldexpf((float)fraction, 1 - bias - t.mantissa)
                   : ldexpf((float)(fraction | 1u << t.mantissa), e - bias - t.mantissa);
  if (t.infinite && e == (1 << t.exponent) - 1) x = fraction ? kNan : kInfinity;
  if (!t.infinite && magnitude == (1u << (t.exponent + t.mantissa)) - 1) x = kNan;
  return bits >> (t.exponent + t.mantissa) & 1 ? -x : x;
}
inline constexpr HostFloat kHalf{5, 10, true, 65504.0f}, kBrain{8, 7, true, 0x1.fep127f}, kE4M3{4, 3, false, 448.0f},
    kE5M2{5, 2, true, 57344.0f};
inline float load_f16(uint16_t bits) { return tw_wide(bits, kHalf); }
inline uint16_t store_f16(float x) { return (uint16_t)tw_narrow(x, kHalf); }
inline uint16_t store_f16_rz(float x) { return (uint16_t)tw_narrow(x, kHalf, FE_TOWARDZERO); }
inline uint16_t store_bf16(float x) { return (uint16_t)tw_narrow(x, kBrain); }
inline float __float2half(float x) { return load_f16(store_f16(x)); }
inline float __float2half_rn(float x) { return load_f16(store_f16(x)); }
inline float __float2half_rz(float x) { return load_f16(store_f16_rz(x)); }
inline float __float2half_rd(float x) { return load_f16((uint16_t)tw_narrow(x, kHalf, FE_DOWNWARD)); }
inline float __float2half_ru(float x) { return load_f16((uint16_t)tw_narrow(x, kHalf, FE_UPWARD)); }
inline void __float22half2_rn(uint16_t* to, float first, float second) {
  to[0] = store_f16(first), to[1] = store_f16(second);
}
inline void __float22bfloat162_rn(uint16_t* to, float first, float second) {
  to[0] = store_bf16(first), to[1] = store_bf16(second);
}
// The device's conversions to 8 bits saturate, infinities too. Texts for devices without them have their own.
inline uint8_t tw_saturated(float x, const HostFloat& t) {
  const float y = x != x ? x : fabsf(x) > t.most ? copysignf(t.most, x) : x;
  return x != x ? (uint8_t)0x7f : (uint8_t)tw_narrow(y, t);
}
#ifndef TW_HAS_store_e4m3
inline uint8_t store_e4m3(float x) { return tw_saturated(x, kE4M3); }
#endif
#ifndef TW_HAS_store_e5m2
inline uint8_t store_e5m2(float x) { return tw_saturated(x, kE5M2); }
#endif
#ifndef TW_HAS_load_e4m3
inline float load_e4m3(uint8_t bits) { return tw_wide(bits, kE4M3); }
#endif
inline void tw_float2_of_e4m3(float* to, const uint8_t* from) {
  to[0] = tw_wide(from[0], kE4M3), to[1] = tw_wide(from[1], kE4M3);
}
inline void __nv_cvt_float2_to_fp8x2_e4m3(uint8_t* to, float first, float second) {
  to[0] = tw_saturated(first, kE4M3), to[1] = tw_saturated(second, kE4M3);
}
inline void __nv_cvt_float2_to_fp8x2_e5m2(uint8_t* to, float first, float second) {
  to[0] = tw_saturated(first, kE5M2), to[1] = tw_saturated(second, kE5M2);
}
#ifndef TW_HAS_round_tf32
inline float round_tf32(float x) {
  if (x != x) return x;
  const unsigned bits = __float_as_uint(x);
  return isinf(x) ? x : __uint_as_float((bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu);
}
#endif

inline uint16_t tw_sum_f16(uint16_t a, uint16_t b) { return store_f16(load_f16(a) + load_f16(b)); }
inline uint16_t tw_sum_bf16(uint16_t a, uint16_t b) { return store_bf16(tw_wide(a, kBrain) + tw_wide(b, kBrain)); }
#define TW_ADDS(name, count, type, sum)                                               \
  inline void name(void* to, const type* v) {                                         \
    for (int i = 0; i < count; ++i) ((type*)to)[i] = sum(((const type*)to)[i], v[i]); \
  }
inline float tw_sum_f32(float a, float b) { return a + b; }
TW_ADDS(tw_add_f32x2, 2, float, tw_sum_f32)
TW_ADDS(tw_add_f32x4, 4, float, tw_sum_f32)
TW_ADDS(tw_add_f16x2x1, 2, uint16_t, tw_sum_f16)
TW_ADDS(tw_add_f16x2x2, 4, uint16_t, tw_sum_f16)
TW_ADDS(tw_add_f16x2x4, 8, uint16_t, tw_sum_f16)
TW_ADDS(tw_add_bf16x2x1, 2, uint16_t, tw_sum_bf16)
TW_ADDS(tw_add_bf16x2x2, 4, uint16_t, tw_sum_bf16)
TW_ADDS(tw_add_bf16x2x4, 8, uint16_t, tw_sum_bf16)
inline uint16_t tw_atomic_add_f16(void* to, uint16_t v) {
  return tw_changed((uint16_t*)to, [&](uint16_t old) { return tw_sum_f16(old, v); });
}
inline uint16_t tw_atomic_add_bf16(void* to, uint16_t v) {
  return tw_changed((uint16_t*)to, [&](uint16_t old) { return tw_sum_bf16(old, v); });
}
inline void tw_add_f16(void* to, uint16_t v) { tw_atomic_add_f16(to, v); }
inline void tw_add_bf16(void* to, uint16_t v) { tw_atomic_add_bf16(to, v); }

// ---- what sm_90a has beside loads and stores

inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}

// An mbarrier: arrivals that a phase takes, those that are missing, bytes that are, and how many phases are over.
struct HostBarrier {
  uint64_t arrivals : 12, missing : 12, phases : 8;
  int64_t bytes : 32;
};
static_assert(sizeof(HostBarrier) == 8);
template <class Change>
inline void tw_change(uint64_t* barrier, Change change) {
  auto& b = *(HostBarrier*)barrier;
  change(b);
  if (b.missing == 0 && b.bytes == 0) b.missing = b.arrivals, ++b.phases;
}
inline uint64_t* tw_there(const void* here, uint32_t rank) {
  return (uint64_t*)(tw_calls->shared_of(rank) + __cvta_generic_to_shared(here));
}
inline void tw_init_barrier(uint64_t* barrier, uint32_t arrivals) {
  auto& b = *(HostBarrier*)barrier;
  b.arrivals = arrivals, b.missing = arrivals, b.phases = 0, b.bytes = 0;
}
inline void tw_arrive(uint64_t* barrier) {
  tw_change(barrier, [](HostBarrier& b) { --b.missing; });
}
inline void tw_arrive_copied(uint64_t* barrier) { tw_arrive(barrier); }
inline void tw_arrive_at(uint64_t* barrier, uint32_t block) { tw_arrive(tw_there(barrier, block)); }
inline void tw_arrive_written(uint64_t* barrier, uint32_t block) { tw_arrive(tw_there(barrier, block)); }
inline void tw_arrive_behind_fence(uint64_t* barrier, uint32_t block) { tw_arrive(tw_there(barrier, block)); }
inline void tw_expect(uint64_t* barrier, uint32_t bytes) { ((HostBarrier*)barrier)->bytes += bytes; }
inline void tw_arrive_expect(uint64_t* barrier, uint32_t bytes) { tw_expect(barrier, bytes), tw_arrive(barrier); }
inline void tw_arrive_expect_at(uint64_t* barrier, uint32_t block, uint32_t bytes) {
  tw_arrive_expect(tw_there(barrier, block), bytes);
}
inline void tw_came(uint64_t* barrier, uint32_t bytes) {
  tw_change(barrier, [&](HostBarrier& b) { b.bytes -= bytes; });
}
inline void tw_wait(uint64_t* barrier, uint32_t parity) {
  while ((((volatile HostBarrier*)barrier)->phases & 1u) == (parity & 1u)) tw_calls->turn();
}
inline void tw_wait_written(uint64_t* barrier, uint32_t parity) { tw_wait(barrier, parity); }
inline void tw_fence_barrier_init() {}
inline void tw_fence_cluster() {}
inline void tw_fence_async_shared() {}
inline void tw_fence_async() {}
inline void* tw_map_shared(const void* here, uint32_t block) { return tw_there(here, block); }
inline void tw_arrive_cluster() { tw_calls->arrive_cluster(); }
inline void tw_arrive_cluster_first() { tw_calls->arrive_cluster(); }
inline void tw_wait_cluster() { tw_calls->wait_cluster(); }
inline void tw_sync_cluster() { tw_calls->arrive_cluster(), tw_calls->wait_cluster(); }
inline void tw_bulk_load(void* shared, const void* from, uint32_t bytes, uint64_t* full) {
  memcpy(shared, from, bytes), tw_came(full, bytes);
}
template <class T>
inline void tw_store_to_peer(void* place, uint64_t* barrier, uint32_t block, T value) {
  *(T*)tw_there(place, block) = value, tw_came(tw_there(barrier, block), sizeof value);
}
inline void tw_bulk_commit() {}
template <int pending>
inline void tw_bulk_wait() {}
template <int pending>
inline void tw_bulk_wait_written() {}
template <int count>
inline void tw_take_registers() {}
template <int count>
inline void tw_leave_registers() {}
template <class T, int n>
inline void tw_hold(T (&)[n]) {}
inline void tw_branch() {}
template <uint64_t layout, int shift>
inline uint64_t tw_matrix(uint32_t shared, uint32_t own) {
  return layout >> 32 << 32 | (shared + ((uint32_t)layout + own));
}
inline void tw_wgmma_fence() {}
inline void tw_wgmma_commit() {}
template <int pending>
inline void tw_wgmma_wait() {}
inline void tw_wgmma(const char* name, void* c, const uint32_t* a, uint64_t b, bool accumulate) {
  void* const* all = tw_calls->exchange(0xffffffffu, (void*)a);
  tw_calls->wgmma(name, c, all, 0, b, accumulate);
  tw_calls->leave(0xffffffffu);
}
inline void tw_wgmma(const char* name, void* c, uint64_t a, uint64_t b, bool accumulate) {
  tw_calls->wgmma(name, c, nullptr, a, b, accumulate);
}
template <class... X>
inline void tw_tma_load(void* shared, const void* map, uint64_t* full, X... x) {
  const int at[] = {x...};
  tw_came(full, tw_calls->box("load", shared, map, at, sizeof...(x)));
}
template <class... X>
inline void tw_tma_load_multicast(void* shared, const void* map, uint64_t* full, uint16_t blocks, X... x) {
  const int at[] = {x...};
  for (uint32_t block = 0; block < 16; ++block)
    if (blocks >> block & 1)
      tw_came(tw_there(full, block), tw_calls->box("load", tw_there(shared, block), map, at, sizeof...(x)));
}
template <class... X>
inline void tw_tma_prefetch(const void*, X...) {}
#define TW_STORES(how)                                                    \
  template <class... X>                                                   \
  inline void tw_tma_##how(const void* shared, const void* map, X... x) { \
    const int at[] = {x...};                                              \
    tw_calls->box(#how, (void*)shared, map, at, sizeof...(x));            \
  }
TW_STORES(store)
TW_STORES(add)
TW_STORES(min)
TW_STORES(max)
TW_STORES(and)
TW_STORES(or)
TW_STORES(xor)

// ---- statements that are PTX in a kernel

struct HostOperand {
  uint64_t bits;
  HostOperand(uint64_t x) : bits(x) {}
  HostOperand(uint32_t x) : bits(x) {}
  HostOperand(int32_t x) : bits((uint32_t)x) {}
  HostOperand(double x) : bits((uint64_t)__double_as_longlong(x)) {}
  template <class T>
  HostOperand(T* x) : bits((uint64_t)x) {}
};

// An element of a matrix as mma takes it, the i-th of a word.
inline double tw_mma_element(const char* type, uint64_t word, int i) {
  if (!strcmp(type, "f64")) return __longlong_as_double((long long)word);
  if (!strcmp(type, "tf32")) return __uint_as_float((unsigned)word & ~0x1fffu);
  if (!strcmp(type, "f16")) return tw_wide((unsigned)(word >> 16 * i) & 0xffffu, kHalf);
  if (!strcmp(type, "bf16")) return tw_wide((unsigned)(word >> 16 * i) & 0xffffu, kBrain);
  if (!strcmp(type, "e4m3")) return tw_wide((unsigned)(word >> 8 * i) & 0xffu, kE4M3);
  if (!strcmp(type, "e5m2")) return tw_wide((unsigned)(word >> 8 * i) & 0xffu, kE5M2);
  return !strcmp(type, "s8") ? (double)(int8_t)(word >> 8 * i) : (double)(uint8_t)(word >> 8 * i);
}
// mma.sync (PTX ISA 9.7.14): C of m x n, A of m x k by rows, B of k x n by columns. Word i of A has row lane / 4 + 8 (i
// % 2) and elements from i / 2 * 4 words on, word i of B column lane / 4.
inline void tw_mma(const char* shape, void* const* c, int c_count, const HostOperand* in, int in_count) {
  int m, n, k;
  char result[8], a[8], b[8];
  if (sscanf(shape, "m%dn%dk%d.row.col.%7[^.].%7[^.].%7[^.].", &m, &n, &k, result, a, b) != 6)
    return tw_calls->fault(shape);
  const bool wide = !strcmp(a, "f64");
  const int each = wide || !strcmp(a, "tf32") ? 1 : strstr(a, "16") ? 2 : 4;
  const int a_count = m / 8 * (k / each / 4), b_count = k / each / 4;
  if (a_count + b_count != in_count || c_count != m / 4) return tw_calls->fault(shape);
  struct Words {
    uint64_t at[12];
  } mine{};
  for (int i = 0; i < in_count; ++i) mine.at[i] = in[i].bits;
  void* const* all = tw_calls->exchange(0xffffffffu, &mine);
  const int lane = (int)tw_thread->lane;
  for (int x = 0; x < c_count; ++x) {
    const int row = lane / 4 + x / 2 * 8, column = lane % 4 * 2 + x % 2;
    double sum = 0;
    for (int at = 0; at < k; ++at) {
      const int word = at / each, quad = word / 4;
      const auto& of_a = *(const Words*)all[row % 8 * 4 + word % 4];
      const auto& of_b = *(const Words*)all[column * 4 + word % 4];
      const int i = m == 8 ? quad : quad * 2 + row / 8;
      sum += tw_mma_element(a, of_a.at[i], at % each) * tw_mma_element(b, of_b.at[a_count + quad], at % each);
    }
    if (wide)
      *(double*)c[x] += sum;
    else if (!strcmp(result, "f32"))
      *(float*)c[x] = (float)(*(float*)c[x] + sum);
    else
      *(uint32_t*)c[x] += (uint32_t)(int64_t)sum;
  }
  tw_calls->leave(0xffffffffu);
}
// ldmatrix (PTX ISA 9.7.14.5.15): lane l has the address of row l % 8 of matrix l / 8.
inline void tw_ldmatrix(bool transposed, void* const* to, int count, uint64_t row) {
  const unsigned char* mine = tw_at_shared(row);
  void* const* all = tw_calls->exchange(0xffffffffu, &mine);
  const int lane = (int)tw_thread->lane;
  const auto element = [&](int matrix, int r, int c) {
    uint16_t bits;
    memcpy(&bits, *(const unsigned char**)all[matrix * 8 + r] + 2 * c, 2);
    return (uint32_t)bits;
  };
  for (int i = 0; i < count; ++i) {
    const int r = lane / 4, c = lane % 4 * 2;
    *(uint32_t*)to[i] =
        transposed ? element(i, c, r) | element(i, c + 1, r) << 16 : element(i, r, c) | element(i, r, c + 1) << 16;
  }
  tw_calls->leave(0xffffffffu);
}
// stmatrix (PTX ISA 9.7.14.5.16): lane l has the address of row l % 8 of matrix l / 8.
inline void tw_store_matrices(int matrices, bool transposed, void* row, const void* values) {
  struct Lane {
    unsigned char* row;
    const unsigned char* words;
  } mine{(unsigned char*)row, (const unsigned char*)values};
  void* const* all = tw_calls->exchange(0xffffffffu, &mine);
  const int matrix = (int)tw_thread->lane / 8, r = (int)tw_thread->lane % 8;
  if (matrix < matrices && (uint64_t)row % 16) tw_calls->fault("stmatrix to a row that does not begin at 16 bytes");
  for (int c = 0; c < 8 && matrix < matrices; ++c) {
    const int lane = transposed ? c * 4 + r / 2 : r * 4 + c / 2, half = transposed ? r % 2 : c % 2;
    memcpy(mine.row + 2 * c, ((const Lane*)all[lane])->words + 4 * matrix + 2 * half, 2);
  }
  tw_calls->leave(0xffffffffu);
}
inline void tw_store_matrices_2(void* row, const void* values) { tw_store_matrices(2, false, row, values); }
inline void tw_store_matrices_4(void* row, const void* values) { tw_store_matrices(4, false, row, values); }
inline void tw_store_matrices_2_transposed(void* row, const void* values) { tw_store_matrices(2, true, row, values); }
inline void tw_store_matrices_4_transposed(void* row, const void* values) { tw_store_matrices(4, true, row, values); }
inline void tw_asm(const char* text, void* const* out, int out_count, const HostOperand* in, int in_count) {
  const auto begins = [&](const char* with) { return strncmp(text, with, strlen(with)) == 0; };
  if (begins("mma.sync.aligned.")) return tw_mma(text + strlen("mma.sync.aligned."), out, out_count, in, in_count);
  if (begins("ldmatrix.")) return tw_ldmatrix(strstr(text, ".trans"), out, out_count, in[0].bits);
  if (begins("cp.async.commit_group") || begins("cp.async.wait_group")) return;
  int bytes = 0;
  const char* size = begins("cp.async.c") ? strstr(text, "[%1], ") : nullptr;
  if (!size || sscanf(size, "[%%1], %d", &bytes) != 1) return tw_calls->fault(text);
  const unsigned read = in_count > 2 ? (unsigned)in[2].bits : (unsigned)bytes;
  if (read > (unsigned)bytes) return tw_calls->fault("cp.async reads more than it writes");
  unsigned char* to = tw_at_shared(in[0].bits);
  if (((uint64_t)to | in[1].bits) % (unsigned)bytes)
    return tw_calls->fault("cp.async at an address that is no multiple of its size");
  if (read) memcpy(to, (const void*)in[1].bits, read);
  memset(to + read, 0, (unsigned)bytes - read);
}

// ---- a kernel as the driver calls it: with the places of its parameters

template <class... P>
inline void tw_call(void (*kernel)(P...), void** parameters) {
  int next = 0;
  struct {
    void (*kernel)(P...);
    void operator()(P... p) { kernel(p...); }
  } call{kernel};
  // Braces: from left to right.
  struct Given {
    decltype(call)& it;
    Given(decltype(call)& it, P... p) : it(it) { it(p...); }
  } given{call, *(P*)parameters[next++]...};
}
