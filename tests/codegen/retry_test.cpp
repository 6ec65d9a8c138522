// What the device compiler says of a plan decides whether it is taken: with NVRTC, without a device.
#include <gtest/gtest.h>

#include "driver/cuda_engine.h"
#include "driver/explain.h"
#include "ir/parse.h"
#include "passes/pipeline.h"
#include "runtime/machine_code.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

// Attention of one head of 128 elements, with tiles of 128 queries and as many keys as asked for.
std::string attention(int keys) {
  const std::string text =
      "program attention {{\n  param Q: float16[1536, 128]\n  param K: float16[1536, 128]\n"
      "  param V: float16[1536, 128]\n  param O: float16[1536, 128]\n  option fast_math=true\n"
      "  launch attention(bx: 12) threads(tx: 256) {{\n    shared Qs: float16[128, 128]\n"
      "    shared Ks: float16[{0}, 128]\n    shared Vs: float16[{0}, 128]\n    fragment S: float32[128, {0}]\n"
      "    fragment P: float16[128, {0}]\n    fragment acc: float32[128, 128]\n    fragment most: float32[128]\n"
      "    fragment before: float32[128]\n    fragment scale: float32[128]\n    fragment part: float32[128]\n"
      "    fragment sum: float32[128]\n    copy from=Q[bx * 128 : 128, 0 : 128] to=Qs\n    fill to=acc value=0.0\n"
      "    fill to=sum value=0.0\n    fill to=most value=-inf\n    for k in 0..1536 // {0} pipelined(stages=2) {{\n"
      "      copy from=K[k * {0} : {0}, 0 : 128] to=Ks\n      fill to=S value=0.0\n"
      "      gemm a=Qs b=Ks c=S transpose_b=true policy=full_row\n      copy from=most to=before\n"
      "      reduce max from=S to=most dim=1 clear=false\n      map i in 128 {{\n"
      "        scale[i] = exp2((before[i] - most[i]) * 0.125)\n      }}\n      map i in 128, j in {0} {{\n"
      "        S[i, j] = exp2((S[i, j] - most[i]) * 0.125)\n      }}\n      reduce sum from=S to=part dim=1\n"
      "      map i in 128 {{\n        sum[i] = sum[i] * scale[i] + part[i]\n      }}\n      copy from=S to=P\n"
      "      map i in 128, j in 128 {{\n        acc[i, j] = acc[i, j] * scale[i]\n      }}\n"
      "      copy from=V[k * {0} : {0}, 0 : 128] to=Vs\n      gemm a=P b=Vs c=acc policy=full_row\n    }}\n"
      "    map i in 128, j in 128 {{\n      acc[i, j] = acc[i, j] / sum[i]\n    }}\n"
      "    copy from=acc to=O[bx * 128 : 128, 0 : 128]\n  }}\n}}\n";
  return fmt::format(fmt::runtime(text), keys);
}

DeviceChoice choice_of(int keys) {
  Dump dump("attention");
  return choose_by_compiler(
      passes::run_passes(ir::parse(attention(keys), "p.tile"), passes::all_passes(), [](auto&&...) {}), "sm_90a", dump);
}

int64_t spilled(const runtime::DeviceLog& log) {
  int64_t bytes = 0;
  for (const runtime::KernelResources& k : log.kernels) bytes += k.spill_store_bytes + k.spill_load_bytes;
  return bytes;
}

class Retry : public testing::Test {
 protected:
  void SetUp() override {
    try {
      runtime::Nvrtc::get();
    } catch (const CompileError& e) {
      GTEST_SKIP() << e.what();
    }
  }
};

TEST_F(Retry, APlanThatFitsItsRegistersIsTheFirst) {
  const DeviceChoice choice = choice_of(128);
  EXPECT_TRUE(choice.lost.empty());
  EXPECT_FALSE(choice.lowering.tried.back().attempt.limits.other_registers);
  EXPECT_EQ(spilled(choice.binary->log), 0);
}

// The same plan, whose roles are arms of one branch: no name of the loader's is alive beside 208 sums.
TEST_F(Retry, NamesOfARoleAreNotKeptInAnother) {
  const char* text =
      "program product {\n  param A: bfloat16[4224, 1536]\n  param B: bfloat16[24752, 1536]\n"
      "  param C: bfloat16[4224, 24752]\n  launch product(bx: 119, by: 33) threads(tx: 128) {\n"
      "    shared As: bfloat16[128, 64]\n    shared Bs: bfloat16[208, 64]\n    fragment acc: float32[128, 208]\n"
      "    fill to=acc value=0.0\n    for k in 0..24 pipelined(stages=5) {\n"
      "      copy from=A[by * 128 : 128, k * 64 : 64] to=As\n      copy from=B[bx * 208 : 208, k * 64 : 64] to=Bs\n"
      "      gemm a=As b=Bs c=acc transpose_b=true\n    }\n"
      "    copy from=acc to=C[by * 128 : 128, bx * 208 : 208]\n  }\n}\n";
  Dump dump("product");
  const DeviceChoice choice = choose_by_compiler(
      passes::run_passes(ir::parse(text, "p.tile"), passes::all_passes(), [](auto&&...) {}), "sm_90a", dump);
  ASSERT_EQ(choice.lost.size(), 1u);
  EXPECT_FALSE(choice.lost[0].attempt.limits.one_branch);
  EXPECT_TRUE(choice.lowering.tried.back().attempt.limits.one_branch);
  EXPECT_TRUE(choice.lowering.plans[0].takes(plan::Role::Takes::TilesInTurn));
  EXPECT_NE(choice.text.kernel.text.find("} else if (warp < 4) {"), std::string::npos);
  EXPECT_EQ(spilled(choice.binary->log), 0);
}

// Half of a row of 32,768 by 256 threads: 64 sums and what goes on around them take more than the 128 registers that
// two blocks leave to a thread each, if nothing bounds them.
TEST_F(Retry, AFewRegistersLessForOneBlockMore) {
  const char* text =
      "program p {\n  param X: float16[4096, 16384]\n  param Y: float16[4096, 16384]\n"
      "  launch rows(bx: 4096) threads(tx: 256) {\n    fragment x: float32[1, 16384]\n"
      "    fragment most: float32[1]\n    fragment sum: float32[1]\n    copy from=X[bx, 0 : 16384] to=x\n"
      "    reduce max from=x to=most dim=1\n    map i in 1, j in 16384 {\n"
      "      p: float32 = exp2((x[i, j] - most[i]) * 1.442695)\n      x[i, j] = select(most[i] == -inf, 0.0, p)\n"
      "    }\n    reduce sum from=x to=sum dim=1\n    sync block\n    map i in 1, j in 16384 {\n"
      "      x[i, j] = x[i, j] * (1.0 / sum[i])\n    }\n    copy from=x to=Y[bx, 0 : 16384]\n  }\n}\n";
  Dump dump("rows");
  const DeviceChoice choice = choose_by_compiler(
      passes::run_passes(ir::parse(text, "p.tile"), passes::all_passes(), [](auto&&...) {}), "sm_90a", dump);
  EXPECT_LE(choice.binary->log.kernels[0].registers, 128);
  EXPECT_LE(spilled(choice.binary->log), 64);
  EXPECT_NE(choice.text.kernel.text.find("__launch_bounds__(256, 2)"), std::string::npos);
}

// A matrix times a vector in 768 blocks: by the compiler's registers a multiprocessor holds five, and a second wave of
// few; six hold all of them.
TEST_F(Retry, AFewRegistersLessForAllBlocksAtOnce) {
  const auto choice_of_rows = [](int64_t rows) {
    const std::string text = fmt::format(
        "program p {{\n  param A: float16[9216]\n  param B: float16[{0}, 9216]\n  param C: float16[{0}]\n"
        "  launch gemv(bx: {1}) threads(tx: 256) {{\n    shared a: float16[256]\n    fragment x: float16[16, 256]\n"
        "    fragment acc: float32[16, 256]\n    fragment r: float32[16]\n    fill to=acc value=0.0\n"
        "    for k in 0..36 {{\n      copy from=A[k * 256 : 256] to=a\n"
        "      copy from=B[bx * 16 : 16, k * 256 : 256] to=x\n      map i in 16, j in 256 {{\n"
        "        acc[i, j] = acc[i, j] + float32(x[i, j]) * float32(a[j])\n      }}\n    }}\n"
        "    reduce sum from=acc to=r dim=1\n    copy from=r to=C[bx * 16 : 16]\n  }}\n}}\n",
        rows, rows / 16);
    Dump dump("gemv");
    return choose_by_compiler(passes::run_passes(ir::parse(text, "p.tile"), passes::all_passes(), [](auto&&...) {}),
                              "sm_90a", dump);
  };
  const DeviceChoice all = choice_of_rows(12288), many = choice_of_rows(12288 * 8);
  EXPECT_NE(all.text.kernel.text.find("__launch_bounds__(256, 6)"), std::string::npos);
  EXPECT_LE(spilled(all.binary->log), 64);
  EXPECT_NE(many.text.kernel.text.find("__launch_bounds__(256)"), std::string::npos);
}

TEST_F(Retry, APlanThatSpillsGivesWayToOneThatDoesNot) {
  const DeviceChoice choice = choice_of(192);
  ASSERT_FALSE(choice.lost.empty());
  EXPECT_FALSE(choice.lost[0].attempt.limits.other_registers);
  EXPECT_TRUE(choice.lowering.tried.back().attempt.limits.other_registers);
  EXPECT_NE(choice.lost[0].why_not.find("the device compiler spills"), std::string::npos) << choice.lost[0].why_not;
  EXPECT_NE(choice.lost[0].why_not.find("and lets products wait for each other"), std::string::npos);
  EXPECT_EQ(spilled(choice.binary->log), 0);
  for (const runtime::PtxasRemark& r : choice.binary->log.remarks) EXPECT_FALSE(r.serializes_wgmma()) << r.message;
  // The page says so.
  const Explanation page = explain_gpu(ir::parse(attention(192), "p.tile"), {}, "sm_90a", true);
  ASSERT_TRUE(page.gpu);
  ASSERT_GE(page.gpu->ladder.size(), 2u);
  EXPECT_TRUE(page.gpu->ladder[0].ends_with(": lost: " + choice.lost[0].why_not)) << page.gpu->ladder[0];
  const auto taken = std::find_if(page.gpu->ladder.begin(), page.gpu->ladder.end(),
                                  [](const std::string& line) { return line.ends_with(": taken"); });
  ASSERT_NE(taken, page.gpu->ladder.end());
  EXPECT_NE(taken->find("other registers for the loader"), std::string::npos) << *taken;
}

// ptxas 13.0 takes x == 64 of x = max(0, min(64, y)) from the clamp, the wrong way around, and forgets the sign of -x
// in min(min(x, -x), 0). What NVRTC makes of a text that says it plainly stands beside: where that is not doubtful any
// more, a newer ptxas is right.
constexpr const char* kClamp = "x: int32 = max(0, min(64, X[tx]))\n    A[tx] = x\n    B[tx] = x == 64";
constexpr const char* kNegated = "A[tx] = min(min(X[tx], -X[tx]), 0)";
constexpr const char* kPlainMin = "A[tx] = min(min(X[tx], tx), 7)";

DeviceChoice choice_for(const char* statements, const std::string& arch) {
  const std::string text = fmt::format(
      "program p {{\n  param X: int32[256]\n  param A: int32[256]\n  param B: bool[256]\n"
      "  launch p(bx: 1) threads(tx: 256) {{\n    {}\n  }}\n}}\n",
      statements);
  Dump dump("p");
  return choose_by_compiler(passes::run_passes(ir::parse(text, "p.tile"), passes::all_passes(), [](auto&&...) {}), arch,
                            dump);
}

TEST_F(Retry, MachineCodeThatGetsIntegersWrongIsNotTaken) {
  for (const char* statements : {kClamp, kNegated}) {
    const DeviceChoice hopper = choice_for(statements, "sm_90a");
    EXPECT_FALSE(hopper.binary->doubtful) << statements;
    EXPECT_NE(hopper.text.kernel.text.find(" tw_min("), std::string::npos) << hopper.text.kernel.text;
    const std::string plain = choice_for(statements, "sm_80").text.kernel.text;
    EXPECT_EQ(plain.find("tw_min"), std::string::npos);
    EXPECT_TRUE(runtime::Nvrtc::get().compile({"p", plain, "sm_90a"}).doubtful) << statements;
    EXPECT_FALSE(runtime::Nvrtc::get().compile({"p", plain, "sm_80"}).doubtful) << statements;
  }
}

TEST_F(Retry, WhatIsRightStaysPlain) {
  const DeviceChoice hopper = choice_for(kPlainMin, "sm_90a");
  EXPECT_TRUE(runtime::doubtful_code(hopper.binary->cubin).triple);
  EXPECT_EQ(hopper.text.kernel.text.find("tw_min"), std::string::npos);
}

// An atomic on a thread's own memory is undefined, and becomes a trap, which is refused.
TEST_F(Retry, PackedElementsOfAThreadsOwnMemoryAreStoredWithoutAtomics) {
  const char* statements =
      "local v: float4_e2m1fn[4]\n    v[0] = float4_e2m1fn(X[tx])\n    v[1] = float4_e2m1fn(2.0)\n"
      "    A[tx] = int32(v[tx % 2])";
  EXPECT_NE(choice_for(statements, "sm_90a").text.kernel.text.find("tw_set_nibble(v, 1ll, "), std::string::npos);
}

TEST(MachineCode, ReadsAnything) {
  const std::string head("\177ELF\2\1\1", 7);
  for (const std::string& file : {std::string(), head, head + std::string(200, '\xff'), std::string(64, '\0')})
    EXPECT_FALSE(runtime::doubtful_code(file).merged_clamp);
}

}  // namespace
}  // namespace tilewright
