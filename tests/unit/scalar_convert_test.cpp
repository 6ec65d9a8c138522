// Conversions against a slow definition: all values of a format in order, the nearest taken by exact comparison.
#include <gtest/gtest.h>

#include "scalar/evaluate.h"

namespace tilewright {
namespace {

// What defines a narrow float format. Values are listed by code, so the code's parity is the last bit's.
struct Format {
  DType type;
  int mantissa, bias;
  int largest_code;  // of a finite value, without the sign
  bool saturates;
  int bits;

  double value(int code) const {
    int exponent = code >> mantissa, fraction = code & ((1 << mantissa) - 1);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                         : std::ldexp((1 << mantissa) + fraction, exponent - bias - mantissa);
  }
  int sign_bit() const { return 1 << (bits - 1); }
  // Nearest, ties to even; finite x. Beyond the largest value the format is continued by one binade to find the tie.
  double nearest(long double x) const {
    long double a = std::fabs(x);
    int low = 0, high = largest_code + 1;
    while (high - low > 1) {
      int middle = (low + high) / 2;
      (value(middle) <= a ? low : high) = middle;
    }
    long double down = a - value(low), up = value(high) - a;
    int code = down < up || (down == up && low % 2 == 0) ? low : high;
    double magnitude = code <= largest_code ? value(code) : saturates ? value(largest_code) : HUGE_VAL;
    return std::copysign(magnitude, static_cast<double>(x));
  }
};

const Format kFormats[] = {
    {f16, 10, 15, 0x7bff, false, 16}, {bf16, 7, 127, 0x7f7f, false, 16}, {e4m3, 3, 7, 0x7e, true, 8},
    {e5m2, 2, 15, 0x7b, true, 8},     {e2m1, 1, 1, 7, true, 4},          {e3m4, 4, 3, 0x6f, true, 8},
    {e2m3, 3, 1, 31, true, 6},        {e3m2, 2, 3, 31, true, 6},
};
// The code of -0 is NaN.
const Format kOfOneZero[] = {
    {e4m3b11fnuz, 3, 11, 0x7f, true, 8}, {e4m3fnuz, 3, 8, 0x7f, true, 8}, {e5m2fnuz, 2, 16, 0x7f, true, 8}};

float load_one(DType type, int bits) {
  uint16_t memory = static_cast<uint16_t>(bits);
  float value = -1;
  load_lanes(type, &memory, {}, 1, &value);
  return value;
}

int store_one(DType type, float value) {
  uint16_t memory = 0;
  store_lanes(type, &memory, {}, 1, &value);
  return memory;
}

float round_one(DType from, DType to, double value, Rounding rounding = Rounding::Nearest, int64_t random = 0) {
  float narrow = static_cast<float>(value), out = -1;
  const void* in = from == f64 ? static_cast<const void*>(&value) : &narrow;
  convert(from, to, rounding, in, &random, &out, 1);
  return out;
}

bool same(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) || (a != a && b != b); }

TEST(ScalarConvert, EveryPatternLoadsAndStoresBack) {
  for (const Format& format : kFormats)
    for (int bits = 0; bits < 1 << format.bits; ++bits) {
      int code = bits & ~format.sign_bit();
      if (code > format.largest_code) continue;
      double value = bits == code ? format.value(code) : -format.value(code);
      ASSERT_TRUE(same(load_one(format.type, bits), static_cast<float>(value))) << format.type.name() << " " << bits;
      ASSERT_EQ(store_one(format.type, static_cast<float>(value)), bits) << format.type.name();
    }
}

TEST(ScalarConvert, PatternsAboveTheLargestAreInfinityAndNan) {
  EXPECT_EQ(load_one(f16, 0x7c00), HUGE_VALF);
  EXPECT_EQ(load_one(bf16, 0xff80), -HUGE_VALF);
  EXPECT_EQ(load_one(e5m2, 0x7c), HUGE_VALF);
  for (int code = 0x7c01; code < 0x8000; ++code) ASSERT_TRUE(std::isnan(load_one(f16, code)));
  for (int code = 0x7f81; code < 0x8000; ++code) ASSERT_TRUE(std::isnan(load_one(bf16, code)));
  for (int code : {0x7f, 0xff}) EXPECT_TRUE(std::isnan(load_one(e4m3, code)));
  for (int code : {0x7d, 0x7e, 0x7f, 0xfd}) EXPECT_TRUE(std::isnan(load_one(e5m2, code)));
}

// Every value, every midpoint and both neighbours of it, both signs; the neighbours as floats and, much closer, as
// doubles.
TEST(ScalarConvert, RoundsToNearestEvenOnce) {
  for (const Format& format : kFormats)
    for (int code = 0; code <= format.largest_code; ++code) {
      double low = format.value(code), middle = (low + format.value(code + 1)) / 2;
      float center = static_cast<float>(middle);
      for (double sign : {1.0, -1.0}) {
        for (float x :
             {static_cast<float>(low), center, std::nextafter(center, 0.0f), std::nextafter(center, HUGE_VALF)}) {
          float want = static_cast<float>(format.nearest(sign * x));
          ASSERT_TRUE(same(round_one(f32, format.type, sign * x), want)) << format.type.name() << " " << sign * x;
          ASSERT_TRUE(same(load_one(format.type, store_one(format.type, static_cast<float>(sign * x))), want))
              << sign * x;
        }
        for (double x : {middle, std::nextafter(middle, 0.0), std::nextafter(middle, HUGE_VAL)})
          ASSERT_TRUE(same(round_one(f64, format.type, sign * x), static_cast<float>(format.nearest(sign * x))))
              << format.type.name() << " " << sign * x;
      }
    }
}

// Around every power of two and every midpoint of its binade, where a rounding before the last would show.
TEST(ScalarConvert, IntegersRoundToNearestEvenOnce) {
  auto expect_rounded = [](DType from, const Format& format, uint64_t bits) {
    const auto in = static_cast<int64_t>(bits);
    const long double exact = from.is_signed() ? static_cast<long double>(in) : static_cast<long double>(bits);
    float out = -1;
    convert(from, format.type, Rounding::Nearest, &in, nullptr, &out, 1);
    ASSERT_TRUE(same(out, static_cast<float>(format.nearest(exact))))
        << from.name() << " " << bits << " to " << format.type.name();
  };
  for (const Format& format : kFormats)
    for (const DType from : {i32, u32, i64, u64})
      for (int bit = 0; bit < from.bits; ++bit)
        for (int half = 0; half <= bit; ++half)
          for (int64_t by : {-2, -1, 0, 1, 2}) {
            const uint64_t mask = from.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << from.bits) - 1;
            const uint64_t value = ((uint64_t{1} << bit) + (uint64_t{1} << half) + static_cast<uint64_t>(by)) & mask;
            const bool extends = from == i32 && (value >> 31) != 0;
            expect_rounded(from, format, extends ? value | ~mask : value);
          }
}

TEST(ScalarConvert, AnInfinityOfTheTypeIsKept) {
  for (const int code : {0x7c, 0xfc}) {
    EXPECT_EQ(store_one(e5m2, load_one(e5m2, code)), code);
    EXPECT_EQ(std::abs(round_one(f32, e5m2, load_one(e5m2, code))), 57344);
  }
}

TEST(ScalarConvert, EveryBitPatternOfFloatSampled) {
  for (const Format& format : kFormats)
    for (uint64_t bits = 0; bits < 1ull << 32; bits += 100'003) {
      float x = std::bit_cast<float>(static_cast<uint32_t>(bits));
      if (!std::isfinite(x)) continue;
      ASSERT_TRUE(same(round_one(f32, format.type, x), static_cast<float>(format.nearest(x))))
          << format.type.name() << x;
      ASSERT_TRUE(same(load_one(format.type, store_one(format.type, x)), static_cast<float>(format.nearest(x))))
          << format.type.name() << x;
    }
}

TEST(ScalarConvert, InfinitySaturatesOrStaysAndNanIsCanonical) {
  const float inf = HUGE_VALF, nan = std::bit_cast<float>(0xffc12345u);
  EXPECT_EQ(store_one(f16, inf), 0x7c00);
  EXPECT_EQ(store_one(f16, -65520.0f), 0xfc00);
  EXPECT_EQ(store_one(bf16, -inf), 0xff80);
  EXPECT_EQ(store_one(bf16, 3.4e38f), 0x7f80);
  EXPECT_EQ(store_one(e4m3, inf), 0x7e);
  EXPECT_EQ(store_one(e4m3, -1e30f), 0xfe);
  EXPECT_EQ(store_one(e5m2, round_one(f32, e5m2, -inf)), 0xfb);
  EXPECT_EQ(store_one(e5m2, -1e30f), 0xfb);
  EXPECT_EQ(store_one(e2m1, inf), 7);
  EXPECT_EQ(store_one(e2m1, -7.5f), 15);
  EXPECT_EQ(store_one(f16, nan), 0x7fff);
  EXPECT_EQ(store_one(bf16, nan), 0x7fff);
  EXPECT_EQ(store_one(e4m3, nan), 0x7f);
  EXPECT_EQ(store_one(e5m2, nan), 0x7f);
  EXPECT_EQ(store_one(e8m0, nan), 0xff);
  EXPECT_EQ(store_one(e2m1, nan), 7);
  EXPECT_EQ(round_one(f32, e2m1, nan), 6.0f);
  EXPECT_EQ(round_one(f32, e4m3, -inf), -448.0f);
  EXPECT_EQ(round_one(f32, f16, -inf), -inf);
  EXPECT_TRUE(std::isnan(round_one(f32, f16, nan)));
}

TEST(ScalarConvert, FormatsOfOneZero) {
  const float inf = HUGE_VALF;
  for (const Format& format : kOfOneZero) {
    for (int code = 1; code <= format.largest_code; ++code)
      for (int sign : {0, 0x80}) {
        const float value = static_cast<float>(sign ? -format.value(code) : format.value(code));
        ASSERT_EQ(load_one(format.type, code | sign), value) << format.type.name() << " " << code;
        ASSERT_EQ(store_one(format.type, value), code | sign) << format.type.name() << " " << code;
        const float middle = static_cast<float>((format.value(code) + format.value(code - 1)) / 2);
        for (float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, inf)}) {
          const float y = sign ? -x : x, want = static_cast<float>(format.nearest(y)) + 0.0f;
          ASSERT_TRUE(same(round_one(f32, format.type, y), want)) << format.type.name() << " " << y;
          ASSERT_TRUE(same(load_one(format.type, store_one(format.type, y)), want)) << format.type.name() << " " << y;
        }
      }
    EXPECT_TRUE(std::isnan(load_one(format.type, 0x80)));
    EXPECT_EQ(store_one(format.type, NAN), 0x80);
    EXPECT_EQ(store_one(format.type, -0.0f), 0);
    EXPECT_FALSE(std::signbit(round_one(f32, format.type, -1e-30)));
    EXPECT_EQ(store_one(format.type, -inf), 0xff);
    EXPECT_EQ(round_one(f32, format.type, inf), static_cast<float>(format.value(0x7f)));
  }
}

TEST(ScalarConvert, EightBitsWithFourOfMantissaKeepInfinity) {
  EXPECT_EQ(store_one(e3m4, HUGE_VALF), 0x70);
  EXPECT_EQ(store_one(e3m4, -HUGE_VALF), 0xf0);
  EXPECT_EQ(round_one(f32, e3m4, -HUGE_VAL), -HUGE_VALF);
  EXPECT_EQ(load_one(e3m4, 0x70), HUGE_VALF);
  EXPECT_EQ(round_one(f32, e3m4, 1e9), 15.5f);
  EXPECT_TRUE(std::isnan(load_one(e3m4, store_one(e3m4, NAN))));
  EXPECT_EQ(store_one(e2m3, NAN), 31);
  EXPECT_EQ(round_one(f32, e3m2, NAN), 28.0f);
}

TEST(ScalarConvert, PowersOfTwoRoundUpOrTowardZero) {
  for (int code = 0; code < 255; ++code) {
    float value = static_cast<float>(std::ldexp(1.0, code - 127));
    ASSERT_TRUE(same(load_one(e8m0, code), value));
    ASSERT_EQ(store_one(e8m0, value), code);
    float above = std::nextafter(value, HUGE_VALF);
    ASSERT_EQ(store_one(e8m0, above), std::min(code + 1, 254)) << code;
    ASSERT_EQ(round_one(f32, e8m0, above, Rounding::TowardZero), value) << code;
    ASSERT_EQ(round_one(f64, e8m0, std::nextafter(double{value}, HUGE_VAL)), load_one(e8m0, std::min(code + 1, 254)));
  }
  EXPECT_TRUE(std::isnan(load_one(e8m0, 255)));
  EXPECT_EQ(store_one(e8m0, 0.0f), 0);
  EXPECT_EQ(store_one(e8m0, -3.0f), 129);
  EXPECT_EQ(store_one(e8m0, HUGE_VALF), 254);
}

TEST(ScalarConvert, TowardZeroNeverGrows) {
  for (const Format& format : {kFormats[0], kFormats[1]})
    for (int code = 0; code < format.largest_code; code += 3) {
      float low = static_cast<float>(format.value(code)), high = static_cast<float>(format.value(code + 1));
      for (double sign : {1.0, -1.0}) {
        ASSERT_EQ(round_one(f32, format.type, sign * std::nextafter(high, 0.0f), Rounding::TowardZero), sign * low);
        ASSERT_EQ(round_one(f32, format.type, sign * high, Rounding::TowardZero), sign * high);
        ASSERT_EQ(round_one(f64, format.type, sign * std::nextafter(double{high}, 0.0), Rounding::TowardZero),
                  sign * low);
      }
    }
  EXPECT_EQ(round_one(f32, f16, 1e9, Rounding::TowardZero), 65504.0f);
  EXPECT_EQ(round_one(f32, f16, -HUGE_VAL, Rounding::TowardZero), -HUGE_VALF);
  EXPECT_EQ(round_one(f32, tf32, 1.0 + 0x1.8p-11, Rounding::TowardZero), 1.0f);
}

TEST(ScalarConvert, TensorFloatKeepsTenBits) {
  EXPECT_EQ(round_one(f32, tf32, 1.0 + 0x1p-11), 1.0f);
  EXPECT_EQ(round_one(f32, tf32, 1.0 + 0x1.8p-10), 1.0f + 0x1p-9f);
  EXPECT_EQ(round_one(f64, tf32, 1.0 + 0x1p-11 + 0x1p-50), 1.0f + 0x1p-10f);
  EXPECT_EQ(round_one(f32, tf32, 3.4028235e38), HUGE_VALF);
}

// The number of random words that round away from zero is the discarded fraction of the unit, in 2^n-ths, rounded down.
TEST(ScalarConvert, StochasticRoundingIsAwayAsOftenAsTheFractionSays) {
  struct Case {
    int format, words;
  };
  for (Case c : {Case{0, 13}, Case{1, 16}, Case{2, 16}, Case{3, 16}, Case{4, 8}}) {
    const Format& format = kFormats[c.format];
    const int steps[] = {0, 1, 2, format.largest_code / 3, format.largest_code / 2, format.largest_code - 1};
    for (int code : steps)
      for (double fraction : {0.0, 0.25, 0.640625, 0.99}) {
        double low = format.value(code), high = format.value(code + 1);
        float x = static_cast<float>(low + fraction * (high - low));
        double discarded = (x - low) / (high - low);
        int64_t away = 0, n = int64_t{1} << c.words;
        for (int64_t r = 0; r < n; ++r) {
          float y = round_one(f32, format.type, x, Rounding::Stochastic, r | int64_t{0xabc} << 20);
          ASSERT_TRUE(y == static_cast<float>(low) || y == static_cast<float>(high))
              << format.type.name() << " " << x << " " << y;
          away += y != static_cast<float>(low);
        }
        ASSERT_EQ(away, static_cast<int64_t>(std::floor(discarded * n))) << format.type.name() << " " << x;
      }
  }
  EXPECT_EQ(round_one(f32, e4m3, -HUGE_VAL, Rounding::Stochastic, 7), -448.0f);
  EXPECT_EQ(round_one(f32, f16, 65535.0, Rounding::Stochastic, 8191), HUGE_VALF);
  EXPECT_TRUE(std::isnan(round_one(f32, bf16, NAN, Rounding::Stochastic, 0xffff)));
}

constexpr DType kIntegers[] = {i4, u4, i8, u8, i16, u16, i32, u32, i64, u64};

long double least_of(DType type) { return type.is_signed() ? -std::ldexp(1.0L, type.bits - 1) : 0.0L; }
long double largest_of(DType type) { return std::ldexp(1.0L, type.bits - (type.is_signed() ? 1 : 0)) - 1; }

int64_t lane_of(DType type, long double value) {
  return type.is_signed() ? static_cast<int64_t>(value) : static_cast<int64_t>(static_cast<uint64_t>(value));
}

TEST(ScalarConvert, FloatsTruncateAndClampToIntegers) {
  for (DType type : kIntegers)
    for (int exponent = -3; exponent < 70; ++exponent)
      for (double step : {0.0, 1.0, 0.5, -0.5, -1.0})
        for (double sign : {1.0, -1.0}) {
          double x = sign * (std::ldexp(1.0, exponent) + step);
          auto want = [&](long double v) {
            return lane_of(type, std::clamp(std::trunc(v), least_of(type), largest_of(type)));
          };
          int64_t got = -1;
          convert(f64, type, Rounding::Nearest, &x, nullptr, &got, 1);
          ASSERT_EQ(got, want(x)) << type.name() << " " << x;
          for (float y : {static_cast<float>(x), std::nextafter(static_cast<float>(x), 0.0f)}) {
            convert(f32, type, Rounding::Nearest, &y, nullptr, &got, 1);
            ASSERT_EQ(got, want(y)) << type.name() << " " << y;
          }
        }
}

TEST(ScalarConvert, InfinityClampsAndNanFollowsPtx) {
  for (DType type : kIntegers) {
    float f[] = {HUGE_VALF, -HUGE_VALF, NAN};
    double d[] = {HUGE_VAL, -HUGE_VAL, NAN};
    int64_t a[3], b[3];
    convert(f32, type, Rounding::Nearest, f, nullptr, a, 3);
    convert(f64, type, Rounding::Nearest, d, nullptr, b, 3);
    for (const int64_t* got : {a, b}) {
      EXPECT_EQ(got[0], lane_of(type, largest_of(type))) << type.name();
      EXPECT_EQ(got[1], lane_of(type, least_of(type))) << type.name();
    }
    int64_t top = type.is_signed() ? lane_of(type, least_of(type)) : int64_t{1} << (type.bits - 1);
    if (type == u64) top = std::numeric_limits<int64_t>::min();
    EXPECT_EQ(a[2], type.bits == 64 ? top : 0) << type.name();
    EXPECT_EQ(b[2], top) << type.name();
  }
}

TEST(ScalarConvert, IntegersRoundOnceToFloats) {
  for (const Format& format : {kFormats[0], kFormats[1], kFormats[2]})
    for (int exponent = 8; exponent < 63; ++exponent)
      for (int64_t low : {int64_t{0}, int64_t{1}, int64_t{-1}})
        for (int64_t middle : {int64_t{1}, int64_t{3}})
          for (int64_t sign : {int64_t{1}, int64_t{-1}}) {
            int place = exponent - format.mantissa - 1;
            int64_t x = sign * ((int64_t{1} << exponent) + (place >= 0 ? middle << place : middle) + low);
            float got = -1;
            convert(i64, format.type, Rounding::Nearest, &x, nullptr, &got, 1);
            ASSERT_TRUE(same(got, static_cast<float>(format.nearest(static_cast<long double>(x)))))
                << format.type.name() << x;
            if (sign < 0) continue;
            convert(u64, format.type, Rounding::Nearest, &x, nullptr, &got, 1);
            ASSERT_TRUE(same(got, static_cast<float>(format.nearest(static_cast<long double>(x)))))
                << format.type.name() << x;
          }
  int64_t all = -1;
  float as_float = 0;
  double as_double = 0;
  convert(u64, f32, Rounding::Nearest, &all, nullptr, &as_float, 1);
  convert(u64, f64, Rounding::Nearest, &all, nullptr, &as_double, 1);
  EXPECT_EQ(as_float, 0x1p64f);
  EXPECT_EQ(as_double, 0x1p64);
}

TEST(ScalarConvert, IntegersWrap) {
  int64_t x[] = {300, -1, 8, -9, 0x123456789}, got[5];
  auto wrapped = [&](DType to) {
    convert(i64, to, Rounding::Nearest, x, nullptr, got, 5);
    return std::vector<int64_t>(got, got + 5);
  };
  EXPECT_EQ(wrapped(u8), (std::vector<int64_t>{44, 255, 8, 247, 0x89}));
  EXPECT_EQ(wrapped(i8), (std::vector<int64_t>{44, -1, 8, -9, -119}));
  EXPECT_EQ(wrapped(i4), (std::vector<int64_t>{-4, -1, -8, 7, -7}));
  EXPECT_EQ(wrapped(u4), (std::vector<int64_t>{12, 15, 8, 7, 9}));
  EXPECT_EQ(wrapped(i32), (std::vector<int64_t>{300, -1, 8, -9, 0x23456789}));
  EXPECT_EQ(wrapped(boolean), (std::vector<int64_t>{1, 1, 1, 1, 1}));
}

TEST(ScalarConvert, PackedElementsShareBytesAndNegativeOffsetsTouchNothing) {
  uint8_t bytes[] = {0xf1, 0x28, 0x73};
  int64_t lanes[6];
  load_lanes(i4, bytes, {nullptr, 1}, 5, lanes);
  EXPECT_EQ(std::vector<int64_t>(lanes, lanes + 5), (std::vector<int64_t>{-1, -8, 2, 3, 7}));
  int64_t offsets[] = {5, -1, 0}, some[] = {9, 9, 9};
  load_lanes(u4, bytes, {offsets}, 3, some);
  EXPECT_EQ(std::vector<int64_t>(some, some + 3), (std::vector<int64_t>{7, 9, 1}));
  int64_t stored[] = {-2, 5, 6};
  store_lanes(i4, bytes, {offsets}, 3, stored);
  EXPECT_EQ(bytes[0], 0xf6);
  EXPECT_EQ(bytes[2], 0xe3);
  float value[] = {-1.5f, 4.0f, 0.5f};
  store_lanes(e2m1, bytes, {nullptr, 1}, 3, value);
  float back[3];
  load_lanes(e2m1, bytes, {nullptr, 1}, 3, back);
  EXPECT_EQ(std::vector<float>(back, back + 3), std::vector<float>(value, value + 3));
  EXPECT_EQ(bytes[0] & 15, 6);
}

TEST(ScalarConvert, WholeTypesLoadAndStore) {
  for (DType type : {boolean, i8, u8, i16, u16, i32, u32, i64, u64, f32, f64, tf32, pointer}) {
    uint64_t memory[2] = {0, 0x8182838485868788u}, copy[2] = {};
    if (type.is_bool()) memory[1] = 0x0100010000010101u;
    int64_t lanes[16] = {};
    int64_t n = 8 / (type.storage_bits() / 8), offsets[16];
    for (int64_t i = 0; i < n; ++i) offsets[i] = 2 * n - 1 - i;
    load_lanes(type, memory, {nullptr, n}, n, lanes);
    store_lanes(type, copy, {nullptr, n}, n, lanes);
    EXPECT_EQ(copy[1], memory[1]) << type.name();
    EXPECT_EQ(copy[0], 0u) << type.name();
    load_lanes(type, memory, {offsets}, n, lanes);
    copy[1] = 0;
    store_lanes(type, copy, {offsets}, n, lanes);
    EXPECT_EQ(copy[1], memory[1]) << type.name();
  }
  int8_t byte = -5;
  int64_t lane = 0;
  load_lanes(i8, &byte, {}, 1, &lane);
  EXPECT_EQ(lane, -5);
  load_lanes(u8, &byte, {}, 1, &lane);
  EXPECT_EQ(lane, 251);
}

}  // namespace
}  // namespace tilewright
