// Float functions: error bounds against the C library's double or long double, special values, order of zeros.
#include <gtest/gtest.h>

#include <cfenv>

#include "scalar/evaluate.h"

namespace tilewright {
namespace {

float call(Function function, std::initializer_list<float> arguments, DType type = f32) {
  std::vector<const void*> in;
  for (const float& a : arguments) in.push_back(&a);
  float out = -1;
  apply(function, type, in, &out, 1);
  return out;
}

int64_t ask(Function function, float x) {
  const void* in[] = {&x};
  int64_t out = -1;
  apply(function, f32, in, &out, 1);
  return out;
}

// |got - want| in units in the last place of `want` as a float; an infinity counts as 2^128.
double ulps(float got, long double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : HUGE_VAL;
  if (std::isnan(got)) return HUGE_VAL;
  if (std::fabs(want) >= 0x1.ffffffp127L)
    return got == std::copysign(HUGE_VALF, static_cast<float>(want)) ? 0 : HUGE_VAL;
  if (want == 0) return got == want ? 0 : HUGE_VAL;
  long double value = std::isinf(got) ? std::copysign(0x1p128L, static_cast<long double>(got)) : got;
  int exponent = 0;
  std::frexp(want, &exponent);
  exponent = std::clamp(exponent - 24, -149, 104);
  return static_cast<double>(std::fabs(value - want) / std::ldexp(1.0L, exponent));
}

struct Unary {
  Function function;
  long double (*exact)(long double);
};

const Unary kUnary[] = {
    {Function::Exp, std::exp},
    {Function::Exp2, std::exp2},
    {Function::Exp10, [](long double x) { return std::pow(10.0L, x); }},
    {Function::Expm1, std::expm1},
    {Function::Log, std::log},
    {Function::Log2, std::log2},
    {Function::Log10, std::log10},
    {Function::Log1p, std::log1p},
    {Function::Sin, std::sin},
    {Function::Cos, std::cos},
    {Function::Tan, std::tan},
    {Function::Asin, std::asin},
    {Function::Acos, std::acos},
    {Function::Atan, std::atan},
    {Function::Sinh, std::sinh},
    {Function::Cosh, std::cosh},
    {Function::Tanh, std::tanh},
    {Function::Asinh, std::asinh},
    {Function::Acosh, std::acosh},
    {Function::Atanh, std::atanh},
    {Function::Erf, std::erf},
    {Function::Rsqrt, [](long double x) { return 1 / std::sqrt(x); }},
    {Function::RsqrtRn, [](long double x) { return 1 / std::sqrt(x); }},
    {Function::Sqrt, std::sqrt},
    {Function::Rcp, [](long double x) { return 1 / x; }},
    {Function::Sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }},
};

// All exponents and both signs evenly, a dense sweep where results are neither trivial nor infinite, and the worst
// inputs that runs over all 2^32 floats found.
std::vector<float> sweep() {
  std::vector<float> x;
  for (uint32_t bits : {0x40a67634u, 0xbefdf4fbu, 0x4071c8e1u, 0x3faacd3du, 0x3fab17c7u, 0x3faaacf3u, 0x3f0e62eau,
                        0xeaa22920u, 0xc085088du, 0x3ec431cbu, 0x3eaf0eefu, 0xe52bf3ffu, 0xc481c173u, 0xe43ee4f4u,
                        0x0080cab3u, 0x3faab4feu, 0x3faaafe3u})
    x.push_back(std::bit_cast<float>(bits));
  for (uint64_t bits = 0; bits < 1ull << 32; bits += 120'011)
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (int i = 0; i < 20'000; ++i) x.push_back(static_cast<float>((i - 10'000) * (110.0 / 10'000) + i * 1e-9));
  for (int i = 0; i < 10'000; ++i) x.push_back(static_cast<float>(i * (3.0 / 10'000)));
  return x;
}

TEST(ScalarMath, UnaryFunctionsKeepTheirBoundOnAllOfFloat) {
  const std::vector<float> x = sweep();
  std::vector<float> y(x.size());
  const void* in[] = {x.data()};
  for (const Unary& f : kUnary) {
    apply(f.function, f32, in, y.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      double error = ulps(y[i], f.exact(x[i]));
      ASSERT_LE(error, info(f.function).max_ulp + 1e-6) << info(f.function).name << "(" << x[i] << ") = " << y[i];
      worst = std::max(worst, error);
    }
    EXPECT_GT(worst, 0.4) << info(f.function).name << ": nothing was measured";
  }
}

TEST(ScalarMath, DoubleFunctionsStayWithinTwoUnitsMore) {
  const std::vector<float> floats = sweep();
  std::vector<double> x(floats.begin(), floats.end()), y(x.size());
  for (double& v : x) v *= 1.0 + 0x1p-40;
  const void* in[] = {x.data()};
  for (const Unary& f : kUnary) {
    apply(f.function, f64, in, y.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); i += 7) {
      long double want = f.exact(x[i]);
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(y[i])) << info(f.function).name << x[i];
      } else if (std::fabs(want) > std::numeric_limits<double>::max()) {
        ASSERT_EQ(y[i], std::copysign(HUGE_VAL, static_cast<double>(want))) << info(f.function).name << x[i];
      } else {
        int exponent = 0;
        std::frexp(want, &exponent);
        long double unit = std::ldexp(1.0L, std::max(exponent - 53, -1074));
        ASSERT_LE(std::fabs(y[i] - want) / unit, info(f.function).max_ulp + 2) << info(f.function).name << x[i];
      }
    }
  }
}

TEST(ScalarMath, NarrowTypesRoundTheFloatResultOnce) {
  for (DType type : {f16, bf16, tf32, e4m3, e5m2, e2m1})
    for (int i = 1; i < 200; ++i) {
      float x = static_cast<float>(i) / 32, want = -1, exact = call(Function::Exp2, {x});
      convert(f32, type, Rounding::Nearest, &exact, nullptr, &want, 1);
      ASSERT_EQ(call(Function::Exp2, {x}, type), want) << type.name();
    }
  EXPECT_EQ(call(Function::Add, {2048.0f, 1.0f}, f16), 2048.0f);
  EXPECT_EQ(call(Function::Mul, {300.0f, 300.0f}, f16), HUGE_VALF);
}

TEST(ScalarMath, SpecialValues) {
  const float inf = HUGE_VALF;
  EXPECT_EQ(call(Function::Exp, {-inf}), 0.0f);
  EXPECT_EQ(call(Function::Exp, {inf}), inf);
  EXPECT_EQ(call(Function::Exp, {-0.0f}), 1.0f);
  EXPECT_EQ(call(Function::Exp2, {-149.0f}), 0x1p-149f);
  EXPECT_EQ(call(Function::Exp2, {127.0f}), 0x1p127f);
  EXPECT_EQ(call(Function::Exp2, {128.0f}), inf);
  EXPECT_EQ(call(Function::Log2, {0x1p-149f}), -149.0f);
  EXPECT_EQ(call(Function::Log, {0.0f}), -inf);
  EXPECT_EQ(call(Function::Log, {-0.0f}), -inf);
  EXPECT_EQ(call(Function::Log, {inf}), inf);
  EXPECT_TRUE(std::isnan(call(Function::Log, {-1.0f})));
  EXPECT_EQ(call(Function::Tanh, {-inf}), -1.0f);
  EXPECT_TRUE(std::signbit(call(Function::Tanh, {-0.0f})));
  EXPECT_TRUE(std::signbit(call(Function::Erf, {-0.0f})));
  EXPECT_TRUE(std::signbit(call(Function::Sin, {-0.0f})));
  EXPECT_TRUE(std::isnan(call(Function::Sin, {inf})));
  EXPECT_TRUE(std::isnan(call(Function::Cos, {-inf})));
  EXPECT_EQ(call(Function::Sin, {0x1p-149f}), 0x1p-149f);
  for (Function f : {Function::Expm1, Function::Log1p, Function::Sin, Function::Tan}) {
    EXPECT_TRUE(std::signbit(call(f, {-0.0f}))) << info(f).name;
    EXPECT_FALSE(std::signbit(call(f, {0.0f}))) << info(f).name;
    for (float tiny : {0x1p-149f, -0x1p-149f, 0x1.8p-140f}) EXPECT_EQ(call(f, {tiny}), tiny) << info(f).name;
  }
  EXPECT_EQ(call(Function::Expm1, {-inf}), -1.0f);
  EXPECT_EQ(call(Function::Expm1, {inf}), inf);
  EXPECT_LT(call(Function::Expm1, {88.7f}), inf);
  EXPECT_EQ(call(Function::Log1p, {-1.0f}), -inf);
  EXPECT_EQ(call(Function::Log1p, {inf}), inf);
  EXPECT_TRUE(std::isnan(call(Function::Log1p, {-1.5f})));
  EXPECT_TRUE(std::isnan(call(Function::Tan, {-inf})));
  EXPECT_EQ(call(Function::Rsqrt, {0.0f}), inf);
  EXPECT_EQ(call(Function::Rsqrt, {-0.0f}), -inf);
  EXPECT_EQ(call(Function::Sigmoid, {-inf}), 0.0f);
  EXPECT_GT(call(Function::Sigmoid, {-100.0f}), 0.0f);
  for (const Unary& f : kUnary) EXPECT_TRUE(std::isnan(call(f.function, {NAN}))) << info(f.function).name;
}

TEST(ScalarMath, BinaryFunctions) {
  const float inf = HUGE_VALF;
  for (float a : {0.0f, 0.5f, 2.0f, 7.25f, 1e-40f, 1e20f})
    for (float b : {-3.0f, -0.5f, 0.0f, 0.3f, 2.0f, 11.0f}) {
      EXPECT_LE(ulps(call(Function::Pow, {a, b}), std::pow((long double)a, (long double)b)), 0.51) << a << " " << b;
      EXPECT_LE(ulps(call(Function::Atan2, {a, b}), std::atan2((long double)a, (long double)b)), 0.51) << a << " " << b;
    }
  EXPECT_EQ(call(Function::Pow, {-2.0f, 3.0f}), -8.0f);
  EXPECT_EQ(call(Function::Fmod, {-7.5f, 2.0f}), -1.5f);
  EXPECT_TRUE(std::isnan(call(Function::Fmod, {inf, 2.0f})));
  EXPECT_EQ(call(Function::Copysign, {3.0f, -0.0f}), -3.0f);
  EXPECT_EQ(call(Function::Fma, {1.0f + 0x1p-12f, 1.0f + 0x1p-12f, -1.0f}), 0x1p-11f + 0x1p-24f);
}

TEST(ScalarMath, RoundingToIntegers) {
  struct Row {
    float x, floor, ceil, trunc, rint, round;
  };
  for (Row r :
       {Row{2.5f, 2, 3, 2, 2, 3}, Row{-2.5f, -3, -2, -2, -2, -3}, Row{3.5f, 3, 4, 3, 4, 4}, Row{-0.5f, -1, 0, 0, 0, -1},
        Row{0.49999997f, 0, 1, 0, 0, 0}, Row{8388607.5f, 8388607, 8388608, 8388607, 8388608, 8388608},
        Row{16777217.0f, 16777216, 16777216, 16777216, 16777216, 16777216},
        Row{-1e30f, -1e30f, -1e30f, -1e30f, -1e30f, -1e30f}}) {
    EXPECT_EQ(call(Function::Floor, {r.x}), r.floor) << r.x;
    EXPECT_EQ(call(Function::Ceil, {r.x}), r.ceil) << r.x;
    EXPECT_EQ(call(Function::Trunc, {r.x}), r.trunc) << r.x;
    EXPECT_EQ(call(Function::Rint, {r.x}), r.rint) << r.x;
    EXPECT_EQ(call(Function::Round, {r.x}), r.round) << r.x;
  }
  EXPECT_TRUE(std::signbit(call(Function::Round, {-0.25f})));
  EXPECT_EQ(call(Function::Round, {-HUGE_VALF}), -HUGE_VALF);
}

TEST(ScalarMath, MinAndMaxPreferNumbersAndOrderZeros) {
  const float values[] = {-HUGE_VALF, -1.0f, -0.0f, 0.0f, 0x1p-149f, 2.0f, HUGE_VALF};
  for (size_t i = 0; i < std::size(values); ++i)
    for (size_t j = 0; j < std::size(values); ++j) {
      float low = values[std::min(i, j)], high = values[std::max(i, j)];
      for (Function f : {Function::Min, Function::MinNan})
        EXPECT_EQ(std::bit_cast<uint32_t>(call(f, {values[i], values[j]})), std::bit_cast<uint32_t>(low)) << i << j;
      for (Function f : {Function::Max, Function::MaxNan})
        EXPECT_EQ(std::bit_cast<uint32_t>(call(f, {values[i], values[j]})), std::bit_cast<uint32_t>(high)) << i << j;
    }
  for (float x : values) {
    for (Function f : {Function::Min, Function::Max}) {
      EXPECT_EQ(call(f, {NAN, x}), x);
      EXPECT_EQ(call(f, {x, NAN}), x);
    }
    for (Function f : {Function::MinNan, Function::MaxNan}) {
      EXPECT_TRUE(std::isnan(call(f, {NAN, x})));
      EXPECT_TRUE(std::isnan(call(f, {x, NAN})));
    }
    EXPECT_EQ(call(Function::Clamp, {x, -1.0f, 1.0f}), std::clamp(x, -1.0f, 1.0f));
  }
  EXPECT_TRUE(std::isnan(call(Function::Min, {NAN, NAN})));
  EXPECT_TRUE(std::isnan(call(Function::Clamp, {NAN, -1.0f, 1.0f})));
}

TEST(ScalarMath, Predicates) {
  for (float x : {-HUGE_VALF, -2.0f, 0.0f, 0x1p-149f, 3e38f, HUGE_VALF, NAN, -NAN}) {
    EXPECT_EQ(ask(Function::IsNan, x), std::isnan(x)) << x;
    EXPECT_EQ(ask(Function::IsInf, x), std::isinf(x)) << x;
    EXPECT_EQ(ask(Function::IsFinite, x), std::isfinite(x)) << x;
  }
}

// 1 / sqrt(x) repeats every two binades, so these are all cases; 1 / (r x r) against 1 decides exactly in 128 bits.
TEST(ScalarMath, IeeeReciprocalSquareRootIsCorrectlyRounded) {
  std::vector<float> x, r;
  for (uint32_t mantissa = 0; mantissa < 2u << 23; mantissa += 5)
    x.push_back(std::bit_cast<float>(0x3f800000u + mantissa));
  r.resize(x.size());
  const void* in[] = {x.data()};
  apply(Function::RsqrtRn, f32, in, r.data(), static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    // Rounded halfway points around r, squared and times x, must enclose 1: in units of 2^-100, exactly.
    auto scaled = [&](int64_t twice_r) {
      auto m = static_cast<unsigned __int128>(static_cast<int64_t>(std::ldexp(x[i], 23)));
      return m * static_cast<unsigned __int128>(twice_r) * static_cast<unsigned __int128>(twice_r);
    };
    int places = r[i] >= 1.0f ? 24 : r[i] >= 0.5f ? 25 : 26;
    auto twice = static_cast<int64_t>(std::ldexp(r[i], places));
    unsigned __int128 one = static_cast<unsigned __int128>(1) << (2 * places + 23);
    ASSERT_LE(scaled(twice - 1), one) << x[i];
    ASSERT_GE(scaled(twice + 1), one) << x[i];
  }
}

template <class T>
std::vector<T> hard_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values = {0,
                           1,
                           T(1.5),
                           T(3),
                           T(1) / 3,
                           Limits::min(),
                           Limits::denorm_min(),
                           Limits::max(),
                           Limits::min() * T(1.25),
                           Limits::max() / 3,
                           Limits::epsilon(),
                           Limits::infinity(),
                           Limits::quiet_NaN()};
  uint64_t state = 1;
  for (int i = 0; i < 40; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(
        static_cast<T>(std::ldexp(1 + static_cast<double>(state >> 11) * 0x1p-53, static_cast<int>(state % 61) - 30)));
  }
  for (size_t i = 0, n = values.size(); i < n; ++i) values.push_back(-values[i]);
  return values;
}

template <class T>
T call_at(Function function, DType type, std::initializer_list<T> arguments) {
  std::vector<T> values(arguments);
  const void* in[3] = {};
  for (size_t i = 0; i < values.size(); ++i) in[i] = &values[i];
  T out = 0;
  apply(function, type, {in, values.size()}, &out, 1);
  return out;
}

// The processor's own rounding modes say what is right.
template <class T>
T in_mode(int mode, Function function, T a, T b, T c) {
  volatile T x = a, y = b, z = c, result = 0;
  std::fesetround(mode);
  switch (function) {
    case Function::AddRz: result = x + y; break;
    case Function::MulRz: result = x * y; break;
    case Function::DivRz: result = x / y; break;
    case Function::SqrtRz: result = std::sqrt(static_cast<T>(x)); break;
    default: result = std::fma(static_cast<T>(x), static_cast<T>(y), static_cast<T>(z)); break;
  }
  std::fesetround(FE_TONEAREST);
  return result;
}

template <class T>
void check_directed(DType type) {
  const std::vector<T> values = hard_values<T>();
  constexpr std::pair<int, int> kModes[] = {{FE_TOWARDZERO, 0}, {FE_UPWARD, 1}, {FE_DOWNWARD, 2}};
  for (Function first : {Function::AddRz, Function::MulRz, Function::DivRz, Function::SqrtRz, Function::FmaRz})
    for (auto [mode, step] : kModes) {
      const auto function = static_cast<Function>(static_cast<int>(first) + step);
      for (size_t i = 0; i < values.size(); ++i)
        for (size_t j = 0; j < (first == Function::SqrtRz ? 1 : values.size()); ++j) {
          const T a = values[i], b = values[j], c = values[(7 * i + 3 * j) % values.size()];
          const T got = info(function).arity == 1   ? call_at<T>(function, type, {a})
                        : info(function).arity == 2 ? call_at<T>(function, type, {a, b})
                                                    : call_at<T>(function, type, {a, b, c});
          const T want = in_mode(mode, first, a, b, c);
          if (std::isnan(want)) {
            ASSERT_TRUE(std::isnan(got)) << info(function).name << "(" << a << ", " << b << ", " << c << ")";
          } else {
            ASSERT_EQ(got, want) << info(function).name << "(" << a << ", " << b << ", " << c << ")";
            ASSERT_EQ(std::signbit(got), std::signbit(want))
                << info(function).name << "(" << a << ", " << b << ", " << c << ")";
          }
        }
    }
}

TEST(ScalarMath, DirectedRoundingIsThatOfTheProcessor) {
  check_directed<float>(f32);
  check_directed<double>(f64);
}

TEST(ScalarMath, LengthsNeighboursAndPowersOfTwo) {
  for (float a : hard_values<float>())
    for (float b : hard_values<float>()) {
      const float length = call(Function::Hypot, {a, b}),
                  want = static_cast<float>(std::hypot(static_cast<long double>(a), b));
      ASSERT_TRUE(std::isnan(want) ? std::isnan(length) : length == want) << a << " " << b;
      const float next = call(Function::NextAfter, {a, b}), expected = std::nextafter(a, b);
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(next)
                                       : next == expected && std::signbit(next) == std::signbit(expected))
          << a << " " << b;
      const double wide = call_at<double>(Function::NextAfter, f64, {a, b}),
                   beside = std::nextafter(double{a}, double{b});
      ASSERT_TRUE(std::isnan(beside) ? std::isnan(wide) : wide == beside) << a << " " << b;
      if (!(std::fabs(b) < 1000)) continue;
      const float scaled = call(Function::Ldexp, {a, b}), power = std::ldexp(a, static_cast<int>(b));
      ASSERT_TRUE(std::isnan(power) ? std::isnan(scaled) : scaled == power) << a << " " << b;
    }
  EXPECT_EQ(call(Function::Ldexp, {1.0f, HUGE_VALF}), HUGE_VALF);
  EXPECT_EQ(call(Function::Ldexp, {1.0f, -HUGE_VALF}), 0.0f);
  EXPECT_TRUE(std::isnan(call(Function::Ldexp, {1.0f, NAN})));
  EXPECT_EQ(call(Function::Hypot, {NAN, -HUGE_VALF}), HUGE_VALF);
}

}  // namespace
}  // namespace tilewright
