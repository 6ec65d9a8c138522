// What fast code would like to know of a call, and nothing else.
#include "passes/assume_fast_calls.h"

#include <gtest/gtest.h>

#include "analysis/divisibility.h"
#include "ir/operators.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"

namespace tilewright {
namespace {

ir::TileProgram parsed(const std::string& text) { return passes::canonicalize(ir::parse(text, "p.tile")); }

// The assumptions that the pass adds, as text.
std::vector<std::string> assumed(const std::string& text) {
  const ir::TileProgram before = parsed(text), after = passes::assume_fast_calls(before);
  ir::check_valid(after, "assume_fast_calls");
  std::vector<std::string> out;
  for (size_t i = before.assumptions.size(); i < after.assumptions.size(); ++i)
    out.push_back(ir::print(after.assumptions[i].condition, after));
  return out;
}

using Texts = std::vector<std::string>;

std::string gemm(const std::string& header) {
  return "program gemm {\n  symbol M: int32\n  symbol N: int32\n  symbol K: int32\n  param A: float16[M, K]\n"
         "  param B: float16[K, N]\n  param C: float32[M, N]\n" +
         header +
         "  launch gemm(bx: (N + 63) // 64, by: (M + 63) // 64) threads(tx: 128) {\n"
         "    shared As: float16[64, 32]\n    shared Bs: float16[32, 64]\n    fragment acc: float32[64, 64]\n"
         "    fill to=acc value=0.0\n    for k in 0..(K + 31) // 32 pipelined(stages=3) {\n"
         "      copy from=A[by * 64 : 64, k * 32 : 32] to=As\n      copy from=B[k * 32 : 32, bx * 64 : 64] to=Bs\n"
         "      gemm a=As b=Bs c=acc\n    }\n    copy from=acc to=C[by * 64 : 64, bx * 64 : 64]\n  }\n}\n";
}

TEST(AssumeFastCalls, AsksForRowsOf16BytesAndFewBlocks) {
  const Texts got = assumed(gemm(""));
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[0], "K % 8 == 0");
  EXPECT_EQ(got[1], "N % 8 == 0");
  EXPECT_NE(got[2].find("<= 1073741823"), std::string::npos) << got[2];
}

TEST(AssumeFastCalls, AsksForNothingThatTheProgramAssumes) {
  const Texts got = assumed(gemm("  assume K % 16 == 0\n  assume N % 8 == 0\n"));
  ASSERT_EQ(got.size(), 1u);
  EXPECT_NE(got[0].find("<="), std::string::npos) << got[0];
  EXPECT_EQ(assumed(gemm("  assume K % 4 == 0\n  assume N % 8 == 0\n"))[0], "K % 8 == 0");
}

// A call of which a fact does not hold has a program that knows so, and asks for nothing that contradicts it.
TEST(AssumeFastCalls, RowsThatAreNoPiecesAreKnownToBe) {
  const ir::TileProgram general =
      passes::assume_what_holds(parsed(gemm("")), [](const ir::Assumption&, size_t i) { return i == 1; });
  Texts got;
  for (const ir::Assumption& a : general.assumptions) got.push_back(ir::print(a.condition, general));
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0], "K % 8 != 0");
  EXPECT_EQ(got[1], "N % 8 == 0");
  const ir::VarId k = general.symbols[2];
  EXPECT_TRUE(analysis::is_no_multiple(ir::var(k, general.var(k).type), general));
  EXPECT_EQ(assumed(gemm("  assume K % 2 != 0\n"))[0], "N % 8 == 0");
}

// What single elements are read of, as the lengths of a batch, may have any extent.
TEST(AssumeFastCalls, AsksForNothingOfWhatNoTileRunsAlong) {
  const Texts got = assumed(
      "program p {\n  symbol B: int32\n  param L: int32[B]\n  param A: float32[B, 64]\n  param C: float32[B, 64]\n"
      "  launch p(bx: B) threads(tx: 32) {\n    n: int32 = L[bx]\n    map j in 64 {\n"
      "      C[bx, j] = A[bx, j] + float32(n)\n    }\n  }\n}\n");
  EXPECT_EQ(got, Texts{});
}

// Blocks of which the hardware numbers each dimension divide nothing.
TEST(AssumeFastCalls, AsksForDimensionsThatTheHardwareNumbers) {
  const std::string text =
      "program p {\n  symbol B: int32\n  symbol M: int32\n  param A: float32[B, M, 64]\n  param C: float32[B, M, 64]\n"
      "  launch p(bx: 2, by: (M + 7) // 8, b: B) threads(tx: 32) {\n    map i in 8, j in 32 {\n"
      "      C[b, by * 8 + i, bx * 32 + j] = A[b, by * 8 + i, bx * 32 + j]\n    }\n  }\n}\n";
  const Texts got = assumed(text);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(got[1], "int64((M + 7) // 8) <= 65535");
  EXPECT_EQ(got[2], "int64(B) <= 65535");
  const auto dimensions = [](const ir::TileProgram& p) {
    return passes::lower_to_threads(p, target::GpuTarget::of(80)).threads.launches[0].grid.size();
  };
  EXPECT_EQ(dimensions(passes::assume_fast_calls(parsed(text))), 3u);
  EXPECT_EQ(dimensions(parsed(text)), 1u);
}

TEST(AssumeFastCalls, ReadsWhatAnExtentIsMadeOf) {
  const auto rows = [](const std::string& extent) {
    return assumed(
        "program p {\n  symbol N: int32\n  param X: float32[N]\n  param A: uint8[4, " + extent +
        "]\n  launch p(bx: 4) threads(tx: 32) {\n    map j in 32 {\n      A[bx, j] = uint8(1)\n    }\n  }\n}\n");
  };
  EXPECT_EQ(rows("N"), Texts{"N % 16 == 0"});
  EXPECT_EQ(rows("N * 4"), Texts{"N % 4 == 0"});
  EXPECT_EQ(rows("N + 16"), Texts{"N % 16 == 0"});
  EXPECT_EQ(rows("N // 2"), Texts{"N % 32 == 0"});
  EXPECT_EQ(rows("N + 1"), Texts{});  // no multiple of N makes it one
  EXPECT_EQ(rows("N * 16"), Texts{});
}

TEST(AssumeFastCalls, AssumptionsAreWhatDivides) {
  const ir::TileProgram p = parsed(gemm("  assume K % 24 == 0\n"));
  const ir::Expr k = ir::var(p.symbols[2], i32);
  EXPECT_EQ(analysis::power_of_two_divisor(k), 1);
  EXPECT_EQ(analysis::power_of_two_divisor(k, p), 8);
  EXPECT_EQ(analysis::power_of_two_divisor(ir::binary(ir::BinaryOp::FloorDiv, k, ir::constant(4)), p), 2);
  EXPECT_EQ(analysis::power_of_two_divisor(ir::binary(ir::BinaryOp::FloorDiv, k, ir::constant(3)), p), 1);
}

// The reason for all of it: rows that are whole pieces come by TMA.
TEST(AssumeFastCalls, AGemmOfSymbolsHasALoader) {
  const ir::TileProgram p = parsed(gemm(""));
  const target::GpuTarget hopper = target::GpuTarget::of(90);
  EXPECT_TRUE(passes::lower_to_threads(passes::assume_fast_calls(p), hopper).plans[0].has_loader());
  EXPECT_FALSE(passes::lower_to_threads(p, hopper).plans[0].has_loader());
}

}  // namespace
}  // namespace tilewright
