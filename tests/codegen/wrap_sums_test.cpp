// Integers wrap around in CUDA text as in the language: what NVRTC may take to stay in its type has no sign there.
#include <gtest/gtest.h>

#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "ir/parse.h"
#include "passes/pipeline.h"

namespace tilewright {
namespace {

// The kernel of a program of these statements about A and B.
std::string kernel_of(const std::string& statements, const std::string& type) {
  const ir::TileProgram tiles = ir::parse(fmt::format(R"(program p {{
  param A: {0}[64]
  param S: int8[64]
  param B: {0}[64]
  symbol M: int32
  param D: int8[M]
  param n: int32
  launch l(bx: 1) threads(tx: 64) {{
{1}
  }}
}}
)",
                                                      type, statements),
                                          "wrap.tile");
  const ir::TileProgram passed = passes::run_passes(order_symbols(tiles), passes::all_passes(), [](auto&&...) {});
  Dump dump("p");
  return write_cuda(passed, "sm_90a", dump).kernel.text;
}

// What it stores to B in a program that stores this value.
std::string stored(const std::string& value, const std::string& type = "int32") {
  const std::string text = kernel_of("    B[tx] = " + value, type);
  const size_t at = text.find("B[tx] = ");
  return at == std::string::npos ? text : text.substr(at + 8, text.find(";", at) - at - 8);
}

TEST(WrapSums, WhatIsLookedAtMayWrap) {
  EXPECT_EQ(stored("A[tx] * 6 // 3"), "floordiv<int32_t>((int32_t)((uint32_t)A[tx] * 6u), 3)");
  EXPECT_EQ(stored("A[tx] * A[tx] % 7"), "floormod<int32_t>((int32_t)((uint32_t)A[tx] * (uint32_t)A[tx]), 7)");
  EXPECT_EQ(stored("select(A[tx] < A[tx] + 1, 1, 0)"), "A[tx] < (int32_t)((uint32_t)A[tx] + 1u) ? (1) : (0)");
  EXPECT_EQ(stored("int64(int32(A[tx]) + 1)", "int64"), "(int64_t)(int32_t)((uint32_t)(int32_t)A[tx] + 1u)");
  EXPECT_EQ(stored("(n + A[tx]) // 3"), "floordiv<int32_t>((int32_t)((uint32_t)n + (uint32_t)A[tx]), 3)");
  EXPECT_EQ(stored("select(n + 2147483647 > 0, 1, 0)"), "0 < (int32_t)((uint32_t)n + 2147483647u) ? (1) : (0)");
  EXPECT_EQ(stored("M * 6 // 3"), "floordiv<int32_t>((int32_t)((uint32_t)M * 6u), 3)");
  EXPECT_EQ(stored("select(tx + 2147483647 > 0, 1, 0)"), "0 < (int32_t)((uint32_t)tx + 2147483647u) ? (1) : (0)");
  EXPECT_EQ(stored("max(tx, A[tx] ^ ~(-2147483648 - A[tx]))"),
            "max<int32_t>(tx, A[tx] ^ ~((int32_t)((uint32_t)A[tx] * 4294967295u + 2147483648u)))");
  EXPECT_EQ(stored("max(tx, int32(int64(A[tx]) + 9223372036854775807 << 1))"),
            "max<int32_t>(tx, (int32_t)((int64_t)((uint64_t)(int64_t)A[tx] + 9223372036854775807ull) << 1))");
  EXPECT_EQ(stored("abs(A[tx] * A[tx])"), "abs<int32_t>((int32_t)((uint32_t)A[tx] * (uint32_t)A[tx]))");
  EXPECT_EQ(stored("(A[tx] + 5) // 2", "int64"), "(int64_t)((uint64_t)A[tx] + 5ull) >> 1");
}

// What is subtracted stays in its type, too: 3 * 2^29 + 2^29 is no int32, though -2^31 is.
TEST(WrapSums, ProductsThatAreSubtracted) {
  EXPECT_EQ(stored("(tx % 5 * -536870912 + 2147483647) % 7"),
            "floormod<int32_t>((int32_t)((uint32_t)tx % 5u) * -536870912 + 2147483647, 7)");
  EXPECT_EQ(stored("(tx % 5 * -3 + 100) // 7"),
            "(int32_t)((uint32_t)(-((int32_t)((uint32_t)tx % 5u) * 3) + 100) / 7u)");
}

TEST(WrapSums, WhatIsKeptMayWrap) {
  EXPECT_EQ(stored("A[tx] * 6 + 1"), "(int32_t)((uint32_t)A[tx] * 6u + 1u)");
  EXPECT_EQ(stored("A[tx] * n"), "(int32_t)((uint32_t)A[tx] * (uint32_t)n)");
}

// Whatever statement has the value: shuffles and calls as well as stores.
TEST(WrapSums, WhatStatementsHandOnMayWrap) {
  const std::string text = kernel_of(R"(    x: int32 = shuffle down value=A[tx] + (-2147483648 - n) lane=1 width=32
    y: uint32 = vote match_any value=A[tx] * 3
    atomic max to=B[x] value=int32(y) - A[tx]
    print message="d" values=[A[tx] - n])",
                                     "int32");
  EXPECT_NE(text.find("(int32_t)((uint32_t)A[tx] + (uint32_t)n * 4294967295u + 2147483648u), 1)"), text.npos) << text;
  EXPECT_NE(text.find("(int32_t)((uint32_t)A[tx] * 3u)"), text.npos) << text;
  EXPECT_NE(text.find("(int32_t)(y + (uint32_t)A[tx] * 4294967295u)"), text.npos) << text;
  EXPECT_NE(text.find("(int32_t)((uint32_t)A[tx] + (uint32_t)n * 4294967295u)"), text.npos) << text;
}

// ptxas takes the opposite of int16 for one of 32 bits.
TEST(WrapSums, OppositesOfNarrowNumbersAreMadeInThirtyTwoBits) {
  EXPECT_EQ(stored("-A[tx]", "int16"), "(int16_t)tw_signed_low<16>(-A[tx])");
  EXPECT_EQ(stored("int8(n) - A[tx]", "int8").find("tw_signed_low<8>("), 8u) << stored("int8(n) - A[tx]", "int8");
  EXPECT_EQ(stored("abs(A[tx])", "int16").find("(int16_t)tw_signed_low<16>(abs"), 0u) << stored("abs(A[tx])", "int16");
  EXPECT_EQ(stored("A[tx] + A[tx + 1 - 1]", "int16").find("tw_signed_low"), std::string::npos);
}

// Of a box that TMA brings: 2^32 is no row of a tensor, and its lower 32 bits are row 0.
TEST(WrapSums, WhereBoxesBegin) {
  const auto begin = [](const std::string& at) {
    const ir::TileProgram tiles = ir::parse(fmt::format(R"(program p {{
  param A: float16[256, 64]
  param S: int32[4]
  param C: float32[64, 64]
  param n: int32
  param m: int32
  launch l(bx: 1) threads(tx: 128) {{
    shared a: float16[64, 64]
    fragment c: float32[64, 64]
    fill to=c value=float32(0.0)
    for k in 0..3 pipelined(stages=2) {{
      copy from=A[{} : 64, 0 : 64] to=a
      gemm a=a b=a c=c transpose_b=true
    }}
    copy from=c to=C[0 : 64, 0 : 64]
  }}
}}
)",
                                                        at),
                                            "begins.tile");
    const ir::TileProgram passed = passes::run_passes(order_symbols(tiles), passes::all_passes(), [](auto&&...) {});
    Dump dump("p");
    const std::string text = write_cuda(passed, "sm_90a", dump).kernel.text;
    const size_t from = text.find("&A_map, &a_full[slot], 0, ");
    return from == std::string::npos ? text : text.substr(from + 26, text.find(");\n", from) - from - 26);
  };
  EXPECT_EQ(begin("bx * 64 + k * 64"), "bx * 64 + k * 64");
  EXPECT_EQ(begin("n + k * 64"), "(int32_t)(k * 64ll + n)");
  EXPECT_EQ(begin("S[bx] * 64"), "(int32_t)min<int64_t>(max<int64_t>(S[bx] * 64ll, -2147483648ll), 2147483647ll)");
  EXPECT_EQ(begin("n * m"),
            "(int32_t)min<int64_t>(max<int64_t>((int64_t)n * (int64_t)m, -2147483648ll), 2147483647ll)");
}

// Offsets of elements that nobody loads may leave 64 bits, too.
TEST(WrapSums, OffsetsOfWhatDataSays) {
  const std::string text = kernel_of("    B[tx] = A[A[tx] * 4 + 1]", "int64");
  EXPECT_NE(text.find("(int64_t)((uint64_t)A[tx] * 4ull + 1ull)"), text.npos) << text;
  EXPECT_EQ(text.find("A[A[tx] * 4ll"), text.npos) << text;
}

// A negative begin and a negative extent may add up to a large number.
TEST(WrapSums, EndsOfLoopsThatMayFall) {
  const auto ends = [](const std::string& range) {
    const std::string text = kernel_of(fmt::format("    for k in {} {{\n      B[k] = A[k]\n    }}", range), "int32");
    const size_t from = text.find("k_end = ");
    return from == std::string::npos ? text : text.substr(from + 8, text.find(";", from) - from - 8);
  };
  EXPECT_EQ(ends("n : A[0]"), "(int32_t)((uint32_t)n + (uint32_t)max<int32_t>(A[0], 0))");
  EXPECT_EQ(ends("bx : A[0]"), "bx + A[0]");
  EXPECT_EQ(ends("n : 8"), "(int32_t)((uint32_t)n + 8u)");
  EXPECT_EQ(ends("3 : M"), "M + 3");
}

TEST(WrapSums, WhatFitsStaysAsItIs) {
  EXPECT_EQ(stored("(int32(S[tx]) * 6 + tx) // 3"), "floordiv<int32_t>((int32_t)S[tx] * 6 + tx, 3)");
  EXPECT_EQ(stored("(M + 63) // 64"), "M + 63 >> 6");
  EXPECT_EQ(stored("((int32(S[tx]) & 15 ^ 8) - 8) // 3"), "floordiv<int32_t>((((int32_t)S[tx] & 15) ^ 8) - 8, 3)");
}

// -(x * -2147483648) would leave the type where x * -2147483648 does not.
TEST(WrapSums, TheLeastNumberHasNoOpposite) {
  EXPECT_EQ(stored("A[tx] * -2147483648"), "(int32_t)((uint32_t)A[tx] * 2147483648u)");
  EXPECT_EQ(stored("A[tx] + -2147483648"), "(int32_t)((uint32_t)A[tx] + 2147483648u)");
  EXPECT_EQ(stored("A[tx] * -2147483647"), "(int32_t)((uint32_t)A[tx] * 2147483649u)");
}

}  // namespace
}  // namespace tilewright
