// Bits that may be set, and addresses exchanged by them: what is claimed holds for every value of the variables.
#include "analysis/bits.h"

#include <gtest/gtest.h>

#include "ir/operators.h"
#include "ir/parse.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {
namespace {

using namespace ir;

// 64 threads and an unrolled loop of 16 steps.
struct Subject {
  ThreadProgram program = parse_thread_program(
      "thread program p {\n  param A: int32[64]\n  launch p(bx: 4) threads(tx: 64) {\n"
      "    for r in 0..16 unroll {\n      A[tx] = r\n    }\n  }\n}\n",
      "p.tile");
  VarId tx = program.launches[0].thread[0], r = program.launches[0].body[0].as<For>()->var;
  Expr thread = cast(var(tx, i32), i64), step = cast(var(r, program.var(r).type), i64);

  int64_t value(const Expr& e, int64_t t, int64_t s) const {
    const auto found = constant_int(substitute(e, {{tx, constant(i32, t)}, {r, constant(program.var(r).type, s)}}));
    EXPECT_TRUE(found.has_value());
    return found.value_or(-1);
  }
};

Expr times(int64_t factor, const Expr& e) { return sum({{factor, e}}, 0, i64); }
Expr of(BinaryOp op, const Expr& e, int64_t by) { return binary(op, e, constant(i64, by)); }

std::vector<Expr> offsets(const Subject& s) {
  const Expr low = of(BinaryOp::FloorMod, s.thread, 4), high = of(BinaryOp::FloorDiv, s.thread, 4);
  return {add(add(times(1024, low), times(64, s.step)), high),
          add(add(times(64, high), times(16, low)), s.step),
          add(times(24, s.thread), times(8, s.step)),
          add(add(times(128, s.step), times(2, s.thread)), constant(i64, int64_t{4096})),
          add(times(8, s.thread), constant(i64, int64_t{-8})),
          add(add(times(64, of(BinaryOp::FloorDiv, sub(s.thread, constant(i64, int64_t{8})), 4)), times(4096, s.step)),
              times(8, low)),
          times(4, s.thread)};
}

TEST(Bits, HoldEveryValue) {
  const Subject s;
  const Bits bits(s.program);
  for (const Expr& e : offsets(s)) {
    const uint64_t may = bits.of(e);
    for (int64_t t = 0; t < 64; ++t)
      for (int64_t r = 0; r < 16; ++r)
        EXPECT_EQ(static_cast<uint64_t>(s.value(e, t, r)) & ~may, 0u) << "thread " << t << ", step " << r;
  }
  EXPECT_EQ(bits.of(s.thread), 63u);
  EXPECT_EQ(bits.of(times(16, s.step)), 240u);
  EXPECT_EQ(bits.of(times(-1, s.thread)), Bits::kUnknown);
  const Expr block = var(s.program.launches[0].block[0], i32);
  EXPECT_EQ(bits.of(cast(block, i64)), 3u);  // of a grid that is known
  EXPECT_EQ(bits.of(binary(BinaryOp::BitXor, block, constant(8))), 11u);
  EXPECT_EQ(bits.of(binary(BinaryOp::BitOr, block, sub(block, constant(9)))), Bits::kUnknown);
  const Expr count = cast(sub(block, constant(9)), u32);
  EXPECT_EQ(bits.of(cast(binary(BinaryOp::TruncMod, count, constant(u32, int64_t{3})), i32)), 3u);
}

TEST(Bits, ThreadsOfTheFirstRoleAreItsOwn) {
  const ThreadProgram p = parse_thread_program(
      "thread program p {\n  param A: float32[512] alignment=16\n  launch p(bx: 1) threads(tx: 384) {\n"
      "    role 0..256 {\n      first: int32 = tx\n      A[first] = 1.0\n    }\n"
      "    role 256..384 {\n      last: int32 = tx - 256\n      A[last + 256] = 1.0\n    }\n  }\n}\n",
      "p.tile");
  const Bits bits(p);
  const auto named = [&](const std::string& name) {
    for (uint32_t i = 0; i < p.vars.size(); ++i)
      if (p.vars[i].name == name) return bits.of(var(VarId{i}, i32));
    return uint64_t{0};
  };
  EXPECT_EQ(named("first"), 255u);
  EXPECT_EQ(named("last"), 127u);
  EXPECT_EQ(named("tx"), 511u);
}

TEST(Bits, ExchangedAddressesAreTheSame) {
  const Subject s;
  const Bits bits(s.program);
  for (const Expr& at : offsets(s))
    for (const auto& [shift, mask] : {std::pair<int64_t, int64_t>{3, 56}, {6, 48}, {4, 112}, {3, 8}}) {
      const Expr swizzled = bits.exchanged(at, shift, mask);
      for (int64_t t = at.as<Sum>()->constant < 0 ? 1 : 0; t < 64; ++t)
        for (int64_t r = 0; r < 16; ++r) {
          const int64_t plain = s.value(at, t, r);
          EXPECT_EQ(s.value(swizzled, t, r), plain ^ (plain >> shift & mask));
        }
    }
}

// The reason for it: what a loop adds stays outside of the exchange.
TEST(Bits, WhatNeitherMovesNorIsMovedStaysOutside) {
  const Subject s;
  const Expr at = offsets(s)[0], swizzled = Bits(s.program).exchanged(at, 6, 48);
  const auto* total = swizzled.as<Sum>();
  ASSERT_TRUE(total);
  bool outside = false;
  for (const Term& t : total->terms) outside = outside || (t.coefficient == 64 && equal(t.value, s.step));
  EXPECT_TRUE(outside);
}

// Nor does what it gives to the exchanged bits change what all steps have in common.
TEST(Bits, StepsAreExclusiveOredToWhatTheyHaveInCommon) {
  const Subject s;
  const Expr low = of(BinaryOp::FloorMod, s.thread, 4), high = of(BinaryOp::FloorDiv, s.thread, 4);
  // Columns of eight that the steps go over, in a row of 64, of which the thread has two; rows in two halves.
  const Expr step = of(BinaryOp::FloorMod, s.step, 8), half = of(BinaryOp::FloorDiv, s.step, 8);
  const Expr column = add(add(times(8, step), times(2, low)), times(64, half));
  const Expr panel = times(2048, of(BinaryOp::FloorDiv, column, 64));
  const Expr at = add(add(times(64, high), panel), of(BinaryOp::FloorMod, column, 64));
  const Expr swizzled = Bits(s.program).exchanged(at, 3, 56);
  for (int64_t t = 0; t < 64; ++t)
    for (int64_t r = 0; r < 16; ++r) {
      const int64_t plain = s.value(at, t, r);
      EXPECT_EQ(s.value(swizzled, t, r), plain ^ (plain >> 3 & 56));
    }
  const auto* total = swizzled.as<Sum>();
  ASSERT_TRUE(total);
  const auto common = std::ranges::find_if(total->terms, [](const Term& t) {
    const auto* n = t.value.as<Binary>();
    return n && n->op == BinaryOp::BitXor;
  });
  ASSERT_NE(common, total->terms.end());
  const auto* pair = common->value.as<Binary>();
  EXPECT_FALSE(used_vars(pair->a).contains(s.r));
  EXPECT_TRUE(equal(pair->b, times(8, step)));
}

// As do multiples of what is above all bits that are read, though others may be below 0.
TEST(Bits, MultiplesStayOutsideOfWhatMayBeNegative) {
  const Subject s;
  const Expr swizzled = Bits(s.program).exchanged(offsets(s)[5], 3, 56);
  const auto* total = swizzled.as<Sum>();
  ASSERT_TRUE(total);
  EXPECT_TRUE(std::ranges::any_of(total->terms,
                                  [&](const Term& t) { return t.coefficient == 4096 && equal(t.value, s.step); }));
}

}  // namespace
}  // namespace tilewright::analysis
