// What CUDA text does about NVRTC and the hardware, and no engine without a device can see.
#include <gtest/gtest.h>

#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "ir/parse.h"
#include "passes/pipeline.h"

namespace tilewright {
namespace {

std::string kernel_text(const std::string& program) {
  const ir::TileProgram tiles = ir::parse(program, "p.tile");
  const ir::TileProgram passed = passes::run_passes(order_symbols(tiles), passes::all_passes(), [](auto&&...) {});
  Dump dump("p");
  const std::string text = write_cuda(passed, "sm_90a", dump).kernel.text;
  return text.substr(text.find("__global__"));
}
int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// A product whose accumulator is read in each turn, and what brings its operands.
std::string running_product(const std::string& head, const std::string& load, const std::string& use) {
  return "program p {\n  param A: float16[64, 128]\n  param B: float16[128, 32]\n  param O: float32[4, 64, 32]\n"
         "  launch l(bx: 1) threads(tx: 128) {\n    shared a: float16[64, 32]\n    shared b: float16[32, 32]\n"
         "    fragment c: float32[64, 32]\n    fill to=c value=0.0\n" +
         head + load + "      gemm a=a b=b c=c\n" + use + "    }\n" +
         "    copy from=c to=O[0, 0 : 64, 0 : 32]\n  }\n}\n";
}
constexpr const char* kUse = "      map i in 64, j in 32 {\n        O[k, i, j] = c[i, j] * 2.0\n      }\n";

TEST(DeviceCompiler, AccumulatorsThatAreReadInTurnsStandInBlocksOfTheirOwn) {
  const std::string by_threads =
      "      copy from=A[0 : 64, k * 32 : 32] to=a\n      copy from=B[k * 32 : 32, 0 : 32] to=b\n";
  // A tile that two statements write goes by no ring: nothing in the loop waits for an mbarrier.
  const std::string twice = by_threads + "      map i in 1 {\n        a[0, 0] = a[0, 0]\n      }\n";
  const std::string read = kernel_text(running_product("    for k in 0..4 {\n", twice, kUse));
  ASSERT_EQ(count(read, "tw_wait("), 0) << read;
  EXPECT_EQ(count(read, "    tw_branch();\n    tw_hold(c);\n    tw_wgmma_fence();"), 1) << read;
  const std::string unread = kernel_text(running_product("    for k in 0..4 {\n", twice, ""));
  EXPECT_EQ(count(unread, "tw_branch()"), 0) << unread;
  EXPECT_EQ(count(unread, "tw_wgmma_fence()"), 1) << unread;
  const std::string by_ring =
      kernel_text(running_product("    for k in 0..4 pipelined(stages=2) {\n", by_threads, kUse));
  ASSERT_GT(count(by_ring, "tw_wait("), 0) << by_ring;
  EXPECT_EQ(count(by_ring, "tw_branch()"), 0) << "a wait is a branch";
}

// The branch asks what its own thread has just put in shared memory.
TEST(DeviceCompiler, CopiesUnderConditionsAreVectors) {
  const std::string text = kernel_text(
      "program p {\n  param K: float16[128, 128]\n  param I: int32[64]\n  param O: float16[64, 128]\n"
      "  launch l(bx: 1) threads(tx: 256) {\n    shared s: float16[64, 128] layout=swizzled\n    shared ok: bool[64]\n"
      "    barrier ready: uint64[1] arrive=[128]\n    if tx < 128 {\n      wait barrier=ready[0] parity=0\n"
      "      map i in 64, j in 128 {\n        O[i, j] = select(ok[i], s[i, j], 0.0)\n      }\n    } else {\n"
      "      for r in 0..4 {\n        ok[r * 16 + (tx - 128) // 8] = I[r * 16 + (tx - 128) // 8] < 100\n"
      "        if ok[r * 16 + (tx - 128) // 8] {\n          for u in 0..2 {\n            for i in 0..8 vectorized {\n"
      "              cp_async s[r * 16 + (tx - 128) // 8, u * 64 + (tx - 128) % 8 * 8 + i] = "
      "K[I[r * 16 + (tx - 128) // 8], u * 64 + (tx - 128) % 8 * 8 + i]\n            }\n          }\n        }\n"
      "      }\n      arrive barrier=ready[0] queue=cp_async\n    }\n  }\n}\n");
  EXPECT_EQ(count(text, "cp.async.cg.shared.global [%0], [%1], 16"), 1) << text;
  EXPECT_EQ(count(text, "tw_arrive_copied("), 1) << text;
}

// Of rows that are looked up; lanes of a warp have neighbouring vectors.
TEST(DeviceCompiler, AdditionsToNeighboursAreOne) {
  const auto text_of = [](const std::string& map, const std::string& type) {
    return kernel_text("program p {\n  param A: " + type + "[32, 128]\n  param I: int32[32]\n  param O: " + type +
                       "[64, 128]\n  launch l(bx: 2) threads(tx: 128) {\n    shared s: " + type +
                       "[16, 128]\n    copy from=A[bx * 16 : 16, 0 : 128] to=s\n" + map + "  }\n}\n");
  };
  std::string fours = "    map i in 16, j in 32 {\n";
  for (int lane = 0; lane < 4; ++lane)
    fours += fmt::format("      atomic add to=O[I[bx * 16 + i], j * 4 + {0}] value=s[i, j * 4 + {0}]\n", lane);
  const std::string wide = text_of(fours + "    }\n", "float32");
  EXPECT_EQ(count(wide, "atomicAdd("), 1) << wide;
  EXPECT_EQ(count(wide, "atomicAdd((float4*)&O[(tx & 31) * 4ll + "), 1) << wide;
  EXPECT_EQ(count(text_of(fours + "    }\n", "float64"), "float4"), 0) << "no instruction adds doubles so";
  const std::string one = "      atomic add to=O[I[bx * 16 + i], j] value=s[i, j]\n    }\n";
  EXPECT_EQ(count(text_of("    map i in 16, j in 128 {\n" + one, "float32"), "tw_add_f32x4(&O["), 1) << "a loop";
  // What begins anywhere in a row has no aligned vectors.
  const std::string odd =
      "      atomic add to=O[I[bx * 16 + i], j * 4 + 1] value=s[i, j * 4]\n"
      "      atomic add to=O[I[bx * 16 + i], j * 4 + 2] value=s[i, j * 4]\n    }\n";
  const std::string apart = text_of("    map i in 16, j in 32 {\n" + odd, "float32");
  EXPECT_EQ(count(apart, "atomicAdd((float2*)") + count(apart, "atomicAdd((float4*)"), 0) << apart;
}

TEST(DeviceCompiler, AccumulatorsOfOneProductAfterTheOther) {
  const std::string turn =
      "    copy from=A[0 : 64, {0} : 32] to=a\n    copy from=B[{0} : 32, 0 : 32] to=b\n    gemm a=a b=b c=c\n"
      "    map i in 64, j in 32 {{\n      O[{1}, i, j] = c[i, j] * 2.0\n    }}\n";
  const std::string text = kernel_text(
      "program p {\n  param A: float16[64, 128]\n  param B: float16[128, 32]\n  param O: float32[4, 64, 32]\n"
      "  launch l(bx: 1) threads(tx: 128) {\n    shared a: float16[64, 32]\n    shared b: float16[32, 32]\n"
      "    fragment c: float32[64, 32]\n    fill to=c value=0.0\n" +
      fmt::format(fmt::runtime(turn), 0, 0) + fmt::format(fmt::runtime(turn), 32, 1) +
      fmt::format(fmt::runtime(turn), 64, 2) + "  }\n}\n");
  ASSERT_EQ(count(text, "tw_wgmma_fence()"), 3) << text;
  EXPECT_EQ(count(text, "tw_branch()"), 2) << "before the second and the third: " << text;
}

// What a copy by cp.async is not to read at all is a size of 0, not one that is left out.
TEST(DeviceCompiler, CopiesThatReadNothingSaySo) {
  const std::string text = kernel_text(
      "program p {\n  param A: float32[1, 16, 32]\n  param O: float32[16, 32]\n  launch l(bx: 1) threads(tx: 128) {\n"
      "    shared s: float32[16, 32]\n    copy from=A[3 : 1, 0 : 16, 0 : 32] to=s completion=(queue=cp_async)\n"
      "    commit cp_async\n    drain cp_async\n    sync block\n    copy from=s to=O\n  }\n}\n");
  EXPECT_EQ(count(text, "cp.async.cg.shared.global [%0], [%1], 16, %2;"), 1) << text;
  EXPECT_EQ(count(text, "\"r\"((uint32_t)(0"), 1) << text;
}

// Two elements of 4 bits are a byte: of addresses, and of what is to be read.
TEST(DeviceCompiler, CopiesOfHalvesOfBytesCountBytes) {
  const std::string text = kernel_text(
      "program p {\n  symbol N: int32\n  param A: int4[N, 128]\n  param B: int4[N, 128]\n"
      "  launch l(bx: (N + 15) // 16) threads(tx: 64) {\n    shared s: int4[16, 128]\n"
      "    copy from=A[bx * 16 : 16, 0 : 128] to=s completion=(queue=cp_async)\n"
      "    commit cp_async\n    drain cp_async\n    sync block\n    copy from=s to=B[bx * 16 : 16, 0 : 128]\n  }\n}\n");
  const size_t begin = text.find("cp.async.ca.shared.global [%0], [%1], 8, %2;");
  ASSERT_NE(begin, std::string::npos) << text;
  const std::string copy = text.substr(begin, text.find('\n', begin) - begin);
  EXPECT_EQ(count(copy, " >> 1])"), 2) << "both places: " << copy;
  EXPECT_EQ(count(copy, "? 16 : 0) / 2u)"), 1) << copy;
}

// As signed integers, which C would make of them, they may overflow.
TEST(DeviceCompiler, ProductsOfUnsignedShortsAreUnsigned) {
  const std::string text = kernel_text(
      "program p {\n  param A: uint16[64]\n  param B: uint16[64]\n  param C: uint16[64]\n"
      "  launch l(bx: 1) threads(tx: 64) {\n    B[tx] = A[tx] * A[tx]\n    C[tx] = A[tx] * 40001\n  }\n}\n");
  EXPECT_EQ(count(text, "(uint16_t)((uint32_t)A[tx] * A[tx])"), 1) << text;
  EXPECT_EQ(count(text, "(uint16_t)(A[tx] * 40001u)"), 1) << text;
}

// -32768 * -32768, twice, is more than an int holds.
TEST(DeviceCompiler, SumsOfShortsAreUnsigned) {
  const std::string text = kernel_text(
      "program p {\n  param A: int16[64]\n  param B: int16[64]\n  param C: int16[64]\n"
      "  launch l(bx: 1) threads(tx: 64) {\n    C[tx] = A[tx] * -32768 - B[tx] * 3 + 5\n  }\n}\n");
  EXPECT_EQ(count(text, "A[tx] * 4294934528u - B[tx] * 3u"), 1) << text;
}

// Two neighbours are converted at once where no turn reads what the one before has stored.
TEST(DeviceCompiler, PairsThatAreConvertedDoNotReadEachOther) {
  const auto text = [](const std::string& value) {
    return kernel_text(
        "program p {\n  param A: float32[64, 8]\n  param B: float16[64, 10]\n"
        "  launch l(bx: 1) threads(tx: 64) {\n    local m: float16[10]\n"
        "    for i in 0..10 unroll {\n      m[i] = float16(i)\n    }\n"
        "    for i in 0..8 unroll {\n      m[i + 2] = float16(" +
        value +
        " + A[tx, i])\n    }\n"
        "    for i in 0..10 unroll {\n      B[tx, i] = m[i]\n    }\n  }\n}\n");
  };
  EXPECT_EQ(count(text("float32(m[i + 2])"), "__float22half2_rn(&m["), 4) << text("float32(m[i + 2])");
  EXPECT_EQ(count(text("float32(m[i + 1])"), "__float22half2_rn(&m["), 0) << text("float32(m[i + 1])");
}

// What is computed in a short type is a float until then: two neighbours are rounded at once. What is only moved is not
// rounded at all.
TEST(DeviceCompiler, ValuesOfShortTypesAreRoundedByTwos) {
  const auto text = [](const std::string& value) {
    return kernel_text(
        "program p {\n  param A: float16[64, 8]\n  param B: float16[64, 8]\n"
        "  launch l(bx: 1) threads(tx: 64) {\n    local m: float16[8]\n"
        "    for i in 0..8 unroll {\n      m[i] = " +
        value + "\n    }\n    for i in 0..8 unroll {\n      B[tx, 7 - i] = m[i]\n    }\n  }\n}\n");
  };
  EXPECT_EQ(count(text("A[tx, i] * A[tx, 0] + A[tx, 7 - i]"), "__float22half2_rn(&m["), 3) << text("products");
  EXPECT_EQ(count(text("A[tx, 7 - i]"), "__float22half2_rn"), 0) << text("A[tx, 7 - i]");
}

// Threads meet between the statements of a branch that some of them take, a function of the program's among them.
TEST(DeviceCompiler, CallsInBranchesStandBetweenBarriers) {
  const std::string text = kernel_text(
      "program p {\n  param A: int32[64]\n  param B: int32[64]\n  launch l(bx: 1) threads(tx: 64) {\n"
      "    shared s: int32[64]\n    shared t: int32[64]\n    s[tx] = A[tx]\n    if tx < 48 {\n"
      "      x: int32 = call function=\"twice\" source=\"__device__ int twice(int x) { return 2 * x; }\" "
      "args=[s[47 - tx]]\n      t[tx] = x\n      s[tx] = t[(tx + 1) % 48] + x\n    }\n"
      "    B[tx] = s[63 - tx]\n  }\n}\n");
  EXPECT_EQ(count(text, "__syncthreads();\n  if (taken) {"), 2) << text;
}

}  // namespace
}  // namespace tilewright
