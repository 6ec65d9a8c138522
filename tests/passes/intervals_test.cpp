// What ranges say of arithmetic that wraps around.
#include "passes/lower/intervals.h"

#include <gtest/gtest.h>

#include "ir/operators.h"

namespace tilewright::passes {
namespace {

using namespace ir;

Expr x_of(DType type) { return var(VarId{1}, type); }
Expr less(const Expr& a, const Expr& b) { return binary(BinaryOp::Lt, a, b); }
Expr number(DType type, int64_t value) { return constant(type, value); }

TEST(Intervals, OneMoreIsNotMoreWhereItWraps) {
  for (const DType type : {i8, i16, i32, i64, u8, u16, u32, u64}) {
    const Expr x = x_of(type), more = less(x, add(x, number(type, 1)));
    Intervals ranges;
    EXPECT_FALSE(ranges.proves(more)) << type.name();
    EXPECT_FALSE(ranges.decides(more).has_value()) << type.name();
    ranges.set(VarId{1}, {0, 100});
    EXPECT_EQ(ranges.proves(more), type.is_signed()) << type.name();
  }
}

TEST(Intervals, AComparisonThatMayHaveWrappedTeachesNothing) {
  for (const DType type : {i32, i64}) {
    const Expr x = x_of(type), inside = less(add(x, number(type, 5)), number(type, 10));
    Intervals ranges;
    ranges.assume(inside);
    EXPECT_FALSE(ranges.proves(less(x, number(type, 100)))) << type.name();
    EXPECT_TRUE(ranges.proves(inside)) << type.name();
    const Intervals::Ranges before = ranges.narrow(inside);
    EXPECT_TRUE(before.empty());
    Intervals bounded;
    bounded.set(VarId{1}, {-1000, 1000});
    bounded.assume(inside);
    EXPECT_TRUE(bounded.proves(less(x, number(type, 5)))) << type.name();
  }
}

TEST(Intervals, LargeUnsignedNumbersAreNotNegative) {
  const Expr large = number(u64, int64_t{-5}), x = x_of(u64);
  Intervals ranges;
  ranges.set(VarId{1}, {0, 100});
  EXPECT_EQ(ranges.decides(less(x, large)), true);
  EXPECT_EQ(ranges.decides(less(large, x)), false);
  EXPECT_EQ(ranges.decides(binary(BinaryOp::Eq, x, large)), false);
  // Two of them may differ.
  ranges.set(VarId{1}, ranges.of(number(u64, int64_t{-7})));
  EXPECT_EQ(ranges.decides(binary(BinaryOp::Eq, x, large)), std::nullopt);
  EXPECT_EQ(ranges.decides(less(x, large)), std::nullopt);
}

TEST(Intervals, AnUnsignedNumberMayBeNegativeAsASignedOne) {
  const Intervals ranges;
  const Expr signed_x = cast(x_of(u64), i64);
  EXPECT_EQ(ranges.decides(binary(BinaryOp::Le, number(i64, 0), signed_x)), std::nullopt);
  EXPECT_FALSE(ranges.proves(binary(BinaryOp::Le, number(i64, 0), signed_x)));
  EXPECT_EQ(ranges.decides(binary(BinaryOp::Le, number(i64, 0), cast(x_of(u32), i64))), true);
}

TEST(Intervals, TheLeastNumberHasNoNegative) {
  for (const int64_t least : {INT64_MIN, INT64_MIN + 1, INT64_MAX}) {
    const Expr x = x_of(i64), below = less(x, number(i64, least));
    Intervals ranges;
    ranges.assume(below);
    ranges.narrow(below);
    EXPECT_FALSE(ranges.proves(binary(BinaryOp::Le, number(i64, 0), x)));
    EXPECT_FALSE(ranges.proves(less(number(i64, 5), x)));
    EXPECT_EQ(ranges.decides(binary(BinaryOp::Le, number(i64, 0), x)), std::nullopt);
  }
}

TEST(Intervals, QuotientsAndShiftsOfUnboundedNumbers) {
  const Intervals ranges;
  const Expr x = x_of(u64), y = var(VarId{2}, u64);
  const auto shifted = ranges.of(binary(BinaryOp::Shr, x, number(u64, 8)));
  EXPECT_EQ(shifted.high, (int64_t{1} << 56) - 1);
  EXPECT_GE(ranges.of(binary(BinaryOp::FloorMod, x, add(y, number(u64, 1)))).high, kUnbounded);
  EXPECT_EQ(ranges.of(binary(BinaryOp::FloorMod, x, number(u64, 10))).high, 9);
}

}  // namespace
}  // namespace tilewright::passes
