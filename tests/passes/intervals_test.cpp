// What ranges say of arithmetic that wraps around.
#include "passes/lower/intervals.h"

#include <gtest/gtest.h>

#include "ir/operators.h"
#include "ir/widen.h"
#include "passes/lower/narrow.h"

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

TEST(Intervals, WhatHoldsOfANumberHoldsOfItsMultiples) {
  const Expr x = x_of(i32), wide = cast(x, i64);
  Intervals ranges;
  ranges.set(VarId{1}, {0, 31});
  ranges.assume(less(x, number(i32, 20)));
  const auto times = [&](int64_t by, int64_t more) { return add(mul(number(i64, by), wide), number(i64, more)); };
  EXPECT_TRUE(ranges.proves(less(times(2, 281), number(i64, 320))));
  EXPECT_FALSE(ranges.proves(less(times(2, 282), number(i64, 320))));
  EXPECT_FALSE(ranges.proves(less(times(3, 281), number(i64, 320))));
  EXPECT_FALSE(ranges.proves(less(number(i64, -1), times(-2, 37))));  // x = 19 gives -1
  EXPECT_TRUE(ranges.proves(less(number(i64, -1), times(-2, 38))));
  // Multiples that leave 64 bits say nothing.
  const int64_t huge = int64_t{1} << 62;
  EXPECT_FALSE(ranges.proves(less(times(huge, 0), number(i64, 5))));
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

// floor(x / d) < k where x < d k, and k <= floor(x / d) where d k <= x: beside what is known of x, an extent that a
// call decides too.
TEST(Intervals, QuotientsAreBoundedByTheirDividends) {
  const Expr x = x_of(i32), extent = var(VarId{2}, i32);
  const auto quotient = [](const Expr& a, int64_t by) { return binary(BinaryOp::FloorDiv, a, number(a->type, by)); };
  Intervals ranges;
  ranges.set(VarId{2}, {0, 1'000'000});
  ranges.count(VarId{1}, i32, mul(number(i32, 3), extent));
  EXPECT_TRUE(ranges.proves(less(quotient(x, 3), extent)));
  EXPECT_TRUE(ranges.proves(less(quotient(x, 4), extent)));
  EXPECT_FALSE(ranges.proves(less(quotient(x, 2), extent)));
  EXPECT_FALSE(ranges.proves(less(add(quotient(x, 3), number(i32, 1)), extent)));
  EXPECT_TRUE(ranges.proves(less(quotient(x, 3), add(extent, number(i32, 5)))));
  const VarId named{3};
  ranges.define(named, quotient(x, 3));
  EXPECT_TRUE(ranges.proves(less(var(named, i32), extent)));
  // From below; and dividends below zero, which are rounded down as well.
  Intervals other;
  other.set(VarId{1}, {-7, 100});
  other.set(VarId{2}, {0, 1000});
  other.assume(binary(BinaryOp::Le, mul(number(i32, 4), extent), x));
  EXPECT_TRUE(other.proves(binary(BinaryOp::Le, extent, quotient(x, 4))));
  EXPECT_FALSE(other.proves(less(extent, quotient(x, 4))));
  Intervals negative;
  negative.set(VarId{1}, {-7, 100});
  EXPECT_FALSE(negative.proves(binary(BinaryOp::Le, number(i32, -1), quotient(x, 4))));
  EXPECT_TRUE(negative.proves(binary(BinaryOp::Le, number(i32, -2), quotient(x, 4))));
  const Expr shifted = binary(BinaryOp::Shr, x, number(i32, 2));
  EXPECT_TRUE(other.proves(binary(BinaryOp::Le, extent, shifted)));
  // A dividend that may wrap around is not what it looks like.
  Intervals wide;
  wide.assume(less(x, extent));
  EXPECT_FALSE(wide.proves(less(quotient(add(x, number(i32, 2)), 3), extent)));
}

// 0 <= x mod n < n for every x, where n is no negative number: an extent, of which a call decides.
TEST(Intervals, RemaindersAreBoundedByTheirDivisors) {
  for (const DType type : {i32, i64}) {
    const Expr x = x_of(type), extent = var(VarId{2}, type), zero = number(type, 0);
    const Expr floor = binary(BinaryOp::FloorMod, x, extent), trunc = binary(BinaryOp::TruncMod, x, extent);
    const auto is_inside = [&](const Intervals& ranges, const Expr& e, const Expr& end) {
      return ranges.proves(less(widen(e), widen(end))) && ranges.proves(binary(BinaryOp::Le, zero, e));
    };
    Intervals ranges;
    EXPECT_FALSE(is_inside(ranges, floor, extent)) << type.name();
    ranges.set(VarId{2}, {0, 1'000'000});
    EXPECT_TRUE(is_inside(ranges, floor, extent)) << type.name();
    EXPECT_TRUE(is_inside(ranges, floor, add(extent, number(type, 3)))) << type.name();
    EXPECT_FALSE(is_inside(ranges, floor, sub(extent, number(type, 1)))) << type.name();
    EXPECT_FALSE(is_inside(ranges, floor, x)) << type.name();
    EXPECT_FALSE(is_inside(ranges, trunc, extent)) << type.name();
    const Expr rows = mul(number(type, 4), extent);  // four rows of `extent` each
    EXPECT_TRUE(ranges.proves(less(add(widen(floor), mul(number(i64, 3), widen(extent))), widen(rows)))) << type.name();
    EXPECT_FALSE(ranges.proves(less(add(widen(floor), mul(number(i64, 4), widen(extent))), widen(rows))));
    ranges.set(VarId{1}, {0, 100});
    EXPECT_TRUE(is_inside(ranges, trunc, extent)) << type.name();
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

TEST(Intervals, OfMultiplesMultiplesAreLeft) {
  const Intervals ranges;
  const Expr x = x_of(i32), of_64 = add(mul(number(i32, 64), x), number(i32, 128));
  const auto left = [&](const Expr& e, int64_t by) {
    return ranges.of(binary(BinaryOp::FloorMod, e, number(i32, by))).high;
  };
  EXPECT_EQ(left(of_64, 128), 64);
  EXPECT_EQ(left(of_64, 96), 64);  // 0, 32, 64
  EXPECT_EQ(left(add(of_64, number(i32, 1)), 128), 127);
  EXPECT_EQ(left(x, 128), 127);
}

TEST(Intervals, BitsOfTwoAreNoMoreThanTheLongerOnes) {
  Intervals ranges;
  ranges.set(VarId{1}, {0, 5});
  const Expr x = x_of(i32);
  for (const BinaryOp op : {BinaryOp::BitOr, BinaryOp::BitXor})
    EXPECT_EQ(ranges.of(binary(op, x, binary(BinaryOp::FloorMod, x_of(i32), number(i32, 9)))).high, 7);
  ranges.set(VarId{1}, {-1, 5});
  EXPECT_LT(ranges.of(binary(BinaryOp::BitOr, x, number(i32, 3))).low, 0);
}

TEST(Intervals, BothPartsOfAConjunctionOfBitsHold) {
  const Expr x = x_of(i32), y = var(VarId{2}, i32);
  Intervals ranges;
  ranges.assume(binary(BinaryOp::BitAnd, less(x, number(i32, 7)), less(y, number(i32, 9))));
  EXPECT_TRUE(ranges.proves(less(x, number(i32, 8))));
  EXPECT_TRUE(ranges.proves(less(y, number(i32, 9))));
  EXPECT_FALSE(ranges.proves(less(y, number(i32, 8))));
}

TEST(Intervals, NumbersOf64BitsThat32Hold) {
  Intervals ranges;
  ranges.set(VarId{1}, {0, 1000});
  ranges.set(VarId{2}, {-1000, 1000});
  const Expr x = cast(x_of(i32), i64), y = cast(var(VarId{2}, i32), i64);
  const auto times = [](const Expr& e, int64_t by) { return mul(number(i64, by), e); };
  const auto fits = [&](const Expr& e) { return in_32_bits(e, ranges).has_value(); };
  EXPECT_EQ((*in_32_bits(add(times(x, 1000), number(i64, -8)), ranges))->type, i32);
  EXPECT_TRUE(fits(times(y, 2'000'000)));
  EXPECT_FALSE(fits(times(y, 3'000'000)));
  // Where a sum stays, a part of it may leave.
  EXPECT_FALSE(fits(add(times(x, 3'000'000), times(y, -1))));
  EXPECT_FALSE(fits(add(times(binary(BinaryOp::Min, x, number(i64, 1)), int64_t{1} << 32), y)));
  EXPECT_FALSE(fits(cast(var(VarId{3}, u32), i64)));
  EXPECT_TRUE(fits(binary(BinaryOp::FloorDiv, y, number(i64, 7))));
  EXPECT_FALSE(fits(binary(BinaryOp::FloorDiv, x, y)));
  EXPECT_FALSE(fits(binary(BinaryOp::FloorMod, times(y, 3'000'000), number(i64, 7))));
}

}  // namespace
}  // namespace tilewright::passes
