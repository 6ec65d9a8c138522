// Loops over the scalar texts. The float loops exist twice: the processor's multiply-add turns every fma from a library
// call into an instruction, with the same result.
#include "scalar/evaluate.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "scalar/text.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

template <class T>
using Inputs = std::array<const T*, 3>;

// out[i] = f(in...[i]) for a text function of one to three operands.
template <auto f, class T, class Out>
[[gnu::always_inline]] inline void map(const Inputs<T>& in, Out* out, int64_t n) {
  const T *a = in[0], *b = in[1], *c = in[2];
  if constexpr (std::is_invocable_v<decltype(f), T>) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i]);
  } else if constexpr (std::is_invocable_v<decltype(f), T, T>) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i]);
  } else {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) out[i] = f(a[i], b[i], c[i]);
  }
}

[[gnu::always_inline]] inline void apply_f32(Function function, const Inputs<float>& in, float* out, int64_t* truth,
                                             int64_t n) {
  using namespace scalar;
  switch (exact_of(function)) {
    case Function::Add: return map<add_f32>(in, out, n);
    case Function::Sub: return map<sub_f32>(in, out, n);
    case Function::Mul: return map<mul_f32>(in, out, n);
    case Function::Div: return map<div_f32>(in, out, n);
    case Function::Fma: return map<fma_f32>(in, out, n);
    case Function::Sqrt: return map<sqrt_f32>(in, out, n);
    case Function::Rcp: return map<rcp_f32>(in, out, n);
    case Function::RsqrtRn: return map<rsqrt_rn_f32>(in, out, n);
    case Function::Abs: return map<abs_f32>(in, out, n);
    case Function::Neg: return map<neg_f32>(in, out, n);
    case Function::Floor: return map<floor_f32>(in, out, n);
    case Function::Ceil: return map<ceil_f32>(in, out, n);
    case Function::Trunc: return map<trunc_f32>(in, out, n);
    case Function::Rint: return map<rint_f32>(in, out, n);
    case Function::Round: return map<round_f32>(in, out, n);
    case Function::NextAfter: return map<nextafter_f32>(in, out, n);
    case Function::Ldexp: return map<ldexp_f32>(in, out, n);
    case Function::AddRz: return map<add_rz_f32>(in, out, n);
    case Function::AddRu: return map<add_ru_f32>(in, out, n);
    case Function::AddRd: return map<add_rd_f32>(in, out, n);
    case Function::MulRz: return map<mul_rz_f32>(in, out, n);
    case Function::MulRu: return map<mul_ru_f32>(in, out, n);
    case Function::MulRd: return map<mul_rd_f32>(in, out, n);
    case Function::DivRz: return map<div_rz_f32>(in, out, n);
    case Function::DivRu: return map<div_ru_f32>(in, out, n);
    case Function::DivRd: return map<div_rd_f32>(in, out, n);
    case Function::FmaRz: return map<fma_rz_f32>(in, out, n);
    case Function::FmaRu: return map<fma_ru_f32>(in, out, n);
    case Function::FmaRd: return map<fma_rd_f32>(in, out, n);
    case Function::SqrtRz: return map<sqrt_rz_f32>(in, out, n);
    case Function::SqrtRu: return map<sqrt_ru_f32>(in, out, n);
    case Function::SqrtRd: return map<sqrt_rd_f32>(in, out, n);
    case Function::Copysign: return map<copysign_f32>(in, out, n);
    case Function::Fmod: return map<fmod_f32>(in, out, n);
    case Function::Min: return map<min_f32>(in, out, n);
    case Function::Max: return map<max_f32>(in, out, n);
    case Function::MinNan: return map<min_nan_f32>(in, out, n);
    case Function::MaxNan: return map<max_nan_f32>(in, out, n);
    case Function::Clamp: return map<clamp_f32>(in, out, n);
    case Function::IsNan: return map<isnan_f32>(in, truth, n);
    case Function::IsInf: return map<isinf_f32>(in, truth, n);
    case Function::IsFinite: return map<isfinite_f32>(in, truth, n);
    case Function::Exp: return map<exp_f32>(in, out, n);
    case Function::Exp2: return map<exp2_f32>(in, out, n);
    case Function::Exp10: return map<exp10_f32>(in, out, n);
    case Function::Expm1: return map<expm1_f32>(in, out, n);
    case Function::Log: return map<log_f32>(in, out, n);
    case Function::Log2: return map<log2_f32>(in, out, n);
    case Function::Log10: return map<log10_f32>(in, out, n);
    case Function::Log1p: return map<log1p_f32>(in, out, n);
    case Function::Sin: return map<sin_f32>(in, out, n);
    case Function::Cos: return map<cos_f32>(in, out, n);
    case Function::Tan: return map<tan_f32>(in, out, n);
    case Function::Asin: return map<asin_f32>(in, out, n);
    case Function::Acos: return map<acos_f32>(in, out, n);
    case Function::Atan: return map<atan_f32>(in, out, n);
    case Function::Atan2: return map<atan2_f32>(in, out, n);
    case Function::Sinh: return map<sinh_f32>(in, out, n);
    case Function::Cosh: return map<cosh_f32>(in, out, n);
    case Function::Tanh: return map<tanh_f32>(in, out, n);
    case Function::Asinh: return map<asinh_f32>(in, out, n);
    case Function::Acosh: return map<acosh_f32>(in, out, n);
    case Function::Atanh: return map<atanh_f32>(in, out, n);
    case Function::Erf: return map<erf_f32>(in, out, n);
    case Function::Hypot: return map<hypot_f32>(in, out, n);
    case Function::Pow: return map<pow_f32>(in, out, n);
    case Function::Rsqrt: return map<rsqrt_f32>(in, out, n);
    case Function::RcpApprox: return map<rcp_approx_f32>(in, out, n);
    case Function::Sigmoid: return map<sigmoid_f32>(in, out, n);
    default: fail_internal("an integer function on floats", __FILE__, __LINE__);
  }
}

[[gnu::always_inline]] inline void round_f32(DType type, Rounding rounding, const float* in, const int64_t* random,
                                             float* out, int64_t n) {
  const Inputs<float> one = {in};
  if (rounding == Rounding::Stochastic) {
    auto loop = [&](auto round) __attribute__((always_inline)) {
      for (int64_t i = 0; i < n; ++i) out[i] = round(in[i], static_cast<uint32_t>(random[i]));
    };
    switch (type.kind) {
      case Kind::Float: return loop([](float x, uint32_t r) { return scalar::round_f16_rs(x, r); });
      case Kind::BFloat: return loop([](float x, uint32_t r) { return scalar::round_bf16_rs(x, r); });
      case Kind::Float8E4M3FN: return loop([](float x, uint32_t r) { return scalar::round_e4m3_rs(x, r); });
      case Kind::Float8E5M2: return loop([](float x, uint32_t r) { return scalar::round_e5m2_rs(x, r); });
      default: return loop([](float x, uint32_t r) { return scalar::round_e2m1_rs(x, r); });
    }
  }
  const bool down = rounding == Rounding::TowardZero;
  switch (type.kind) {
    case Kind::Float: return down ? map<scalar::round_f16_rz>(one, out, n) : map<scalar::round_f16>(one, out, n);
    case Kind::BFloat: return down ? map<scalar::round_bf16_rz>(one, out, n) : map<scalar::round_bf16>(one, out, n);
    case Kind::TFloat: return down ? map<scalar::round_tf32_rz>(one, out, n) : map<scalar::round_tf32>(one, out, n);
    case Kind::Float8E8M0: return down ? map<scalar::round_e8m0_rz>(one, out, n) : map<scalar::round_e8m0>(one, out, n);
    case Kind::Float8E4M3FN: return map<scalar::round_e4m3>(one, out, n);
    case Kind::Float8E5M2: return map<scalar::round_e5m2>(one, out, n);
    case Kind::Float8E3M4: return map<scalar::round_e3m4>(one, out, n);
    case Kind::Float8E4M3B11FNUZ: return map<scalar::round_e4m3b11fnuz>(one, out, n);
    case Kind::Float8E4M3FNUZ: return map<scalar::round_e4m3fnuz>(one, out, n);
    case Kind::Float8E5M2FNUZ: return map<scalar::round_e5m2fnuz>(one, out, n);
    case Kind::Float6E2M3FN: return map<scalar::round_e2m3>(one, out, n);
    case Kind::Float6E3M2FN: return map<scalar::round_e3m2>(one, out, n);
    default: return map<scalar::round_e2m1>(one, out, n);
  }
}

using ApplyF32 = void (*)(Function, const Inputs<float>&, float*, int64_t*, int64_t);
using RoundF32 = void (*)(DType, Rounding, const float*, const int64_t*, float*, int64_t);

void apply_f32_any(Function function, const Inputs<float>& in, float* out, int64_t* truth, int64_t n) {
  apply_f32(function, in, out, truth, n);
}
void round_f32_any(DType type, Rounding rounding, const float* in, const int64_t* random, float* out, int64_t n) {
  round_f32(type, rounding, in, random, out, n);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma,f16c,bmi,bmi2")]] void apply_f32_avx2(Function function, const Inputs<float>& in, float* out,
                                                              int64_t* truth, int64_t n) {
  apply_f32(function, in, out, truth, n);
}
[[gnu::target("avx2,fma,f16c,bmi,bmi2")]] void round_f32_avx2(DType type, Rounding rounding, const float* in,
                                                              const int64_t* random, float* out, int64_t n) {
  round_f32(type, rounding, in, random, out, n);
}
const bool kHasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
const ApplyF32 kApplyF32 = kHasAvx2 ? apply_f32_avx2 : apply_f32_any;
const RoundF32 kRoundF32 = kHasAvx2 ? round_f32_avx2 : round_f32_any;
#else
constexpr ApplyF32 kApplyF32 = apply_f32_any;
constexpr RoundF32 kRoundF32 = round_f32_any;
#endif

void apply_f64(Function function, const Inputs<double>& in, double* out, int64_t* truth, int64_t n) {
  using namespace scalar;
  switch (exact_of(function)) {
    case Function::Add: return map<add_f64>(in, out, n);
    case Function::Sub: return map<sub_f64>(in, out, n);
    case Function::Mul: return map<mul_f64>(in, out, n);
    case Function::Div: return map<div_f64>(in, out, n);
    case Function::Fma: return map<fma_f64>(in, out, n);
    case Function::Sqrt: return map<sqrt_f64>(in, out, n);
    case Function::Rcp: return map<rcp_f64>(in, out, n);
    case Function::RsqrtRn: return map<rsqrt_rn_f64>(in, out, n);
    case Function::Abs: return map<abs_f64>(in, out, n);
    case Function::Neg: return map<neg_f64>(in, out, n);
    case Function::Floor: return map<floor_f64>(in, out, n);
    case Function::Ceil: return map<ceil_f64>(in, out, n);
    case Function::Trunc: return map<trunc_f64>(in, out, n);
    case Function::Rint: return map<rint_f64>(in, out, n);
    case Function::Round: return map<round_f64>(in, out, n);
    case Function::NextAfter: return map<nextafter_f64>(in, out, n);
    case Function::Ldexp: return map<ldexp_f64>(in, out, n);
    case Function::AddRz: return map<add_rz_f64>(in, out, n);
    case Function::AddRu: return map<add_ru_f64>(in, out, n);
    case Function::AddRd: return map<add_rd_f64>(in, out, n);
    case Function::MulRz: return map<mul_rz_f64>(in, out, n);
    case Function::MulRu: return map<mul_ru_f64>(in, out, n);
    case Function::MulRd: return map<mul_rd_f64>(in, out, n);
    case Function::DivRz: return map<div_rz_f64>(in, out, n);
    case Function::DivRu: return map<div_ru_f64>(in, out, n);
    case Function::DivRd: return map<div_rd_f64>(in, out, n);
    case Function::FmaRz: return map<fma_rz_f64>(in, out, n);
    case Function::FmaRu: return map<fma_ru_f64>(in, out, n);
    case Function::FmaRd: return map<fma_rd_f64>(in, out, n);
    case Function::SqrtRz: return map<sqrt_rz_f64>(in, out, n);
    case Function::SqrtRu: return map<sqrt_ru_f64>(in, out, n);
    case Function::SqrtRd: return map<sqrt_rd_f64>(in, out, n);
    case Function::Copysign: return map<copysign_f64>(in, out, n);
    case Function::Fmod: return map<fmod_f64>(in, out, n);
    case Function::Min: return map<min_f64>(in, out, n);
    case Function::Max: return map<max_f64>(in, out, n);
    case Function::MinNan: return map<min_nan_f64>(in, out, n);
    case Function::MaxNan: return map<max_nan_f64>(in, out, n);
    case Function::Clamp: return map<clamp_f64>(in, out, n);
    case Function::IsNan: return map<isnan_f64>(in, truth, n);
    case Function::IsInf: return map<isinf_f64>(in, truth, n);
    case Function::IsFinite: return map<isfinite_f64>(in, truth, n);
    case Function::Exp: return map<exp_f64>(in, out, n);
    case Function::Exp2: return map<exp2_f64>(in, out, n);
    case Function::Exp10: return map<exp10_f64>(in, out, n);
    case Function::Expm1: return map<expm1_f64>(in, out, n);
    case Function::Log: return map<log_f64>(in, out, n);
    case Function::Log2: return map<log2_f64>(in, out, n);
    case Function::Log10: return map<log10_f64>(in, out, n);
    case Function::Log1p: return map<log1p_f64>(in, out, n);
    case Function::Sin: return map<sin_f64>(in, out, n);
    case Function::Cos: return map<cos_f64>(in, out, n);
    case Function::Tan: return map<tan_f64>(in, out, n);
    case Function::Asin: return map<asin_f64>(in, out, n);
    case Function::Acos: return map<acos_f64>(in, out, n);
    case Function::Atan: return map<atan_f64>(in, out, n);
    case Function::Atan2: return map<atan2_f64>(in, out, n);
    case Function::Sinh: return map<sinh_f64>(in, out, n);
    case Function::Cosh: return map<cosh_f64>(in, out, n);
    case Function::Tanh: return map<tanh_f64>(in, out, n);
    case Function::Asinh: return map<asinh_f64>(in, out, n);
    case Function::Acosh: return map<acosh_f64>(in, out, n);
    case Function::Atanh: return map<atanh_f64>(in, out, n);
    case Function::Erf: return map<erf_f64>(in, out, n);
    case Function::Hypot: return map<hypot_f64>(in, out, n);
    case Function::Pow: return map<pow_f64>(in, out, n);
    case Function::Rsqrt: return map<rsqrt_f64>(in, out, n);
    case Function::RcpApprox: return map<rcp_approx_f64>(in, out, n);
    case Function::Sigmoid: return map<sigmoid_f64>(in, out, n);
    default: fail_internal("an integer function on floats", __FILE__, __LINE__);
  }
}

// f on lanes of T, one to three of them.
template <auto f, class T>
void map_int(const Inputs<int64_t>& in, int64_t* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T a = static_cast<T>(in[0][i]);
    if constexpr (std::is_invocable_v<decltype(f), T>)
      out[i] = static_cast<int64_t>(f(a));
    else if constexpr (std::is_invocable_v<decltype(f), T, T>)
      out[i] = static_cast<int64_t>(f(a, static_cast<T>(in[1][i])));
    else
      out[i] = static_cast<int64_t>(f(a, static_cast<T>(in[1][i]), static_cast<T>(in[2][i])));
  }
}

template <class T>
void apply_int(Function function, const Inputs<int64_t>& in, int64_t* out, int64_t n) {
  using namespace scalar;
  switch (function) {
    case Function::Add: return map_int<add<T>, T>(in, out, n);
    case Function::Sub: return map_int<sub<T>, T>(in, out, n);
    case Function::Mul: return map_int<mul<T>, T>(in, out, n);
    case Function::Neg: return map_int<neg<T>, T>(in, out, n);
    case Function::Abs: return map_int<scalar::abs<T>, T>(in, out, n);
    case Function::Min: return map_int<scalar::min<T>, T>(in, out, n);
    case Function::Max: return map_int<scalar::max<T>, T>(in, out, n);
    case Function::Clamp: return map_int<scalar::clamp<T>, T>(in, out, n);
    case Function::FloorDiv: return map_int<floordiv<T>, T>(in, out, n);
    case Function::FloorMod: return map_int<floormod<T>, T>(in, out, n);
    case Function::TruncDiv: return map_int<truncdiv<T>, T>(in, out, n);
    case Function::TruncMod: return map_int<truncmod<T>, T>(in, out, n);
    case Function::Shl: return map_int<shl<T>, T>(in, out, n);
    case Function::Shr: return map_int<shr<T>, T>(in, out, n);
    case Function::Popcount: return map_int<scalar::popcount<T>, T>(in, out, n);
    case Function::Clz: return map_int<clz<T>, T>(in, out, n);
    case Function::Ffs: return map_int<scalar::ffs<T>, T>(in, out, n);
    case Function::Brev: return map_int<brev<T>, T>(in, out, n);
    case Function::Mulhi: return map_int<mulhi<T>, T>(in, out, n);
    case Function::Dp4a: return map_int<dp4a<T>, T>(in, out, n);
    default: fail_internal("a float function on integers", __FILE__, __LINE__);
  }
}

// Calls f with a value of the C type that holds an integer type, bool or pointer.
template <class F>
void with_c_type(DType type, F f) {
  const int bits = std::max(type.storage_bits(), 8);
  if (!type.is_signed()) {
    if (bits == 8) return f(uint8_t{});
    if (bits == 16) return f(uint16_t{});
    return bits == 32 ? f(uint32_t{}) : f(uint64_t{});
  }
  if (bits == 8) return f(int8_t{});
  if (bits == 16) return f(int16_t{});
  return bits == 32 ? f(int32_t{}) : f(int64_t{});
}

// Any integer brought into the range of an integer type, by wrapping.
void wrap_lanes(DType to, const int64_t* in, int64_t* out, int64_t n) {
  if (to == i4)
    for (int64_t i = 0; i < n; ++i) out[i] = scalar::wrap_i4(static_cast<uint64_t>(in[i]));
  else if (to == u4)
    for (int64_t i = 0; i < n; ++i) out[i] = scalar::wrap_u4(static_cast<uint64_t>(in[i]));
  else
    with_c_type(to, [&]<class T>(T) {
      for (int64_t i = 0; i < n; ++i) out[i] = static_cast<int64_t>(static_cast<T>(in[i]));
    });
}

template <class F>
void integers_of_floats(DType to, const F* in, int64_t* out, int64_t n) {
  auto loop = [&](auto one) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<int64_t>(one(in[i]));
  };
  if (to.is_bool()) return loop([](F x) { return x != 0; });
  if (to.bits == 4) {
    if constexpr (sizeof(F) == 4)
      return to.is_signed() ? loop([](F x) { return scalar::i4_of_f32(x); })
                            : loop([](F x) { return scalar::u4_of_f32(x); });
    else
      return to.is_signed() ? loop([](F x) { return scalar::i4_of_f64(x); })
                            : loop([](F x) { return scalar::u4_of_f64(x); });
  }
  with_c_type(to, [&]<class T>(T) { loop([](F x) { return scalar::int_of_float<T>(x); }); });
}

template <class F>
void floats_of_integers(DType from, const int64_t* in, F* out, int64_t n) {
  if (from.is_signed())
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<F>(in[i]);
  else
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<F>(static_cast<uint64_t>(in[i]));
}

// Floats from which one more rounding to a narrow type is correct.
void odd_floats(DType from, const void* in, float* out, int64_t n) {
  const auto* doubles = static_cast<const double*>(in);
  const auto* integers = static_cast<const int64_t*>(in);
  if (from == f64)
    for (int64_t i = 0; i < n; ++i) out[i] = scalar::odd_f64(doubles[i]);
  else if (from.is_signed())
    for (int64_t i = 0; i < n; ++i) out[i] = scalar::odd_f64(scalar::odd_int64(integers[i]));
  else
    for (int64_t i = 0; i < n; ++i) out[i] = scalar::odd_f64(scalar::odd_uint64(static_cast<uint64_t>(integers[i])));
}

void convert_to_integer(DType from, DType to, const void* in, int64_t* out, int64_t n) {
  const LaneKind kind = lane_kind(from);
  if (kind == LaneKind::Float32) return integers_of_floats(to, static_cast<const float*>(in), out, n);
  if (kind == LaneKind::Float64) return integers_of_floats(to, static_cast<const double*>(in), out, n);
  const auto* integers = static_cast<const int64_t*>(in);
  if (!to.is_bool()) return wrap_lanes(to, integers, out, n);
  for (int64_t i = 0; i < n; ++i) out[i] = integers[i] != 0;
}

void convert_to_double(DType from, const void* in, double* out, int64_t n) {
  const LaneKind kind = lane_kind(from);
  if (kind == LaneKind::Int64) return floats_of_integers(from, static_cast<const int64_t*>(in), out, n);
  const auto* floats = static_cast<const float*>(in);
  if (kind == LaneKind::Float32)
    for (int64_t i = 0; i < n; ++i) out[i] = floats[i];
  else
    std::copy_n(static_cast<const double*>(in), n, out);
}

void convert_to_float(DType from, DType to, Rounding rounding, const void* in, const int64_t* random, float* out,
                      int64_t n) {
  const LaneKind kind = lane_kind(from);
  if (to != f32) {
    if (kind != LaneKind::Float32) odd_floats(from, in, out, n);
    const float* floats = kind == LaneKind::Float32 ? static_cast<const float*>(in) : out;
    return kRoundF32(to, rounding, floats, random, out, n);
  }
  if (kind == LaneKind::Int64) return floats_of_integers(from, static_cast<const int64_t*>(in), out, n);
  const auto* doubles = static_cast<const double*>(in);
  if (kind == LaneKind::Float64)
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(doubles[i]);
  else if (in != out)
    std::copy_n(static_cast<const float*>(in), n, out);
}

}  // namespace

LaneKind lane_kind(DType type) {
  return !type.is_float() ? LaneKind::Int64 : type == f64 ? LaneKind::Float64 : LaneKind::Float32;
}

void apply(Function function, DType type, std::span<const void* const> in, void* out, int64_t n) {
  const FunctionInfo& row = info(function);
  check_internal(accepts(function, type), "{} does not accept {}", row.name, type.name());
  check_internal(in.size() == row.arity, "{} takes {} operands, not {}", row.name, row.arity, in.size());
  auto inputs = [&]<class T>(T) {
    Inputs<T> pointers = {};
    for (size_t i = 0; i < in.size(); ++i) pointers[i] = static_cast<const T*>(in[i]);
    return pointers;
  };
  auto* truth = static_cast<int64_t*>(out);
  if (type == f64) return apply_f64(function, inputs(double{}), static_cast<double*>(out), truth, n);
  if (type.is_float()) {
    auto* floats = static_cast<float*>(out);
    kApplyF32(function, inputs(float{}), floats, truth, n);
    if (type != f32 && !is_closed(function, type)) kRoundF32(type, Rounding::Nearest, floats, nullptr, floats, n);
    return;
  }
  with_c_type(type, [&]<class T>(T) { apply_int<T>(function, inputs(int64_t{}), truth, n); });
  if (type.bits == 4) wrap_lanes(type, truth, truth, n);
}

void convert(DType from, DType to, Rounding rounding, const void* in, const int64_t* random, void* out, int64_t n) {
  check_internal(can_round(to, rounding), "no such rounding to {}", to.name());
  if (to == f64) return convert_to_double(from, in, static_cast<double*>(out), n);
  if (!to.is_float()) return convert_to_integer(from, to, in, static_cast<int64_t*>(out), n);
  if (from == to) {
    if (in != out) std::copy_n(static_cast<const float*>(in), n, static_cast<float*>(out));
    return;
  }
  convert_to_float(from, to, rounding, in, random, static_cast<float*>(out), n);
}

}  // namespace tilewright
