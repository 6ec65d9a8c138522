#include <gtest/gtest.h>

#include "scalar/evaluate.h"

namespace tilewright {
namespace {

int64_t call(Function function, DType type, std::initializer_list<int64_t> arguments) {
  std::vector<const void*> in;
  for (const int64_t& a : arguments) in.push_back(&a);
  int64_t out = -999;
  apply(function, type, in, &out, 1);
  return out;
}

int64_t wrap(DType type, int64_t x) {
  int64_t unit = int64_t{1} << type.bits, low = ((x % unit) + unit) % unit;
  return type.is_signed() && low >= unit / 2 ? low - unit : low;
}

// All pairs of the 4- and 8-bit types against wide arithmetic.
TEST(ScalarInteger, SmallTypesExhaustively) {
  for (DType type : {i4, u4, i8, u8}) {
    int64_t least = type.is_signed() ? -(1 << (type.bits - 1)) : 0, count = int64_t{1} << type.bits;
    for (int64_t a = least; a < least + count; ++a) {
      ASSERT_EQ(call(Function::Neg, type, {a}), wrap(type, -a));
      ASSERT_EQ(call(Function::Abs, type, {a}), wrap(type, std::abs(a)));
      for (int64_t b = least; b < least + count; ++b) {
        ASSERT_EQ(call(Function::Add, type, {a, b}), wrap(type, a + b));
        ASSERT_EQ(call(Function::Sub, type, {a, b}), wrap(type, a - b));
        ASSERT_EQ(call(Function::Mul, type, {a, b}), wrap(type, a * b));
        ASSERT_EQ(call(Function::Min, type, {a, b}), std::min(a, b));
        ASSERT_EQ(call(Function::Max, type, {a, b}), std::max(a, b));
        int64_t amount = wrap(u8, b);
        ASSERT_EQ(call(Function::Shl, type, {a, b}), amount < 8 ? wrap(type, a << amount) : 0)
            << type.name() << a << " " << b;
        ASSERT_EQ(call(Function::Shr, type, {a, b}), amount < 8 ? a >> amount : a < 0 ? -1 : 0);
        if (b == 0) continue;
        ASSERT_EQ(call(Function::TruncDiv, type, {a, b}), wrap(type, a / b));
        ASSERT_EQ(call(Function::TruncMod, type, {a, b}), a % b);
        auto floor = static_cast<int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b)));
        ASSERT_EQ(call(Function::FloorDiv, type, {a, b}), wrap(type, floor));
        ASSERT_EQ(call(Function::FloorMod, type, {a, b}), a - floor * b);
      }
    }
  }
}

TEST(ScalarInteger, BitFunctionsOfBytes) {
  for (int64_t a = 0; a < 256; ++a) {
    int64_t reversed = 0;
    for (int bit = 0; bit < 8; ++bit) reversed |= (a >> bit & 1) << (7 - bit);
    EXPECT_EQ(call(Function::Brev, u8, {a}), reversed);
    EXPECT_EQ(call(Function::Popcount, i8, {wrap(i8, a)}), std::popcount(static_cast<uint8_t>(a)));
    EXPECT_EQ(call(Function::Clz, i8, {wrap(i8, a)}), std::countl_zero(static_cast<uint8_t>(a)));
    EXPECT_EQ(call(Function::Ffs, u8, {a}), a == 0 ? 0 : std::countr_zero(static_cast<uint8_t>(a)) + 1);
    EXPECT_EQ(call(Function::Mulhi, u8, {a, 201}), a * 201 >> 8);
  }
}

TEST(ScalarInteger, WideTypesAtTheirEdges) {
  const int64_t least = std::numeric_limits<int64_t>::min(), least32 = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(call(Function::FloorDiv, i64, {least, -1}), least);
  EXPECT_EQ(call(Function::FloorMod, i64, {least, -1}), 0);
  EXPECT_EQ(call(Function::TruncDiv, i32, {least32, -1}), least32);
  EXPECT_EQ(call(Function::FloorDiv, i32, {-7, 0}), -7);
  EXPECT_EQ(call(Function::FloorMod, i32, {-7, 0}), 0);
  EXPECT_EQ(call(Function::FloorDiv, u64, {-1, 2}), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(call(Function::Abs, i64, {least}), least);
  EXPECT_EQ(call(Function::Mul, i64, {least, 3}), least);
  EXPECT_EQ(call(Function::Min, u64, {-1, 5}), 5);
  EXPECT_EQ(call(Function::Max, u32, {0xffffffff, 5}), 0xffffffff);
  EXPECT_EQ(call(Function::Shl, i32, {1, 31}), least32);
  EXPECT_EQ(call(Function::Shl, i32, {1, 32}), 0);
  EXPECT_EQ(call(Function::Shl, i32, {1, -1}), 0);
  EXPECT_EQ(call(Function::Shr, i32, {-5, 40}), -1);
  EXPECT_EQ(call(Function::Shr, u32, {0x80000000, 31}), 1);
  EXPECT_EQ(call(Function::Shr, u64, {-1, 64}), 0);
  EXPECT_EQ(call(Function::Clz, i64, {0}), 64);
  EXPECT_EQ(call(Function::Clz, i32, {1}), 31);
  EXPECT_EQ(call(Function::Popcount, i32, {-1}), 32);
  EXPECT_EQ(call(Function::Ffs, i64, {least}), 64);
  EXPECT_EQ(call(Function::Brev, u32, {1}), 0x80000000);
  EXPECT_EQ(call(Function::Mulhi, i32, {least32, least32}), 0x40000000);
  EXPECT_EQ(call(Function::Mulhi, u32, {0xffffffff, 0xffffffff}), 0xfffffffe);
  EXPECT_EQ(call(Function::Mulhi, i64, {least, 2}), -1);
  EXPECT_EQ(call(Function::Mulhi, u64, {-1, -1}), -2);
  EXPECT_EQ(call(Function::Clamp, i32, {-9, -3, 3}), -3);
  EXPECT_EQ(call(Function::Dp4a, i32, {0x7f80ff01, 0x80807f02, 10}), 127 * -128 + -128 * -128 + -1 * 127 + 2 + 10);
  EXPECT_EQ(call(Function::Dp4a, u32, {0xffffffff, 0xffffffff, 1}), 4 * 255 * 255 + 1);
}

}  // namespace
}  // namespace tilewright
