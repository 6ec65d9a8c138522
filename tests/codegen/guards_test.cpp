// Which accesses are guarded, and which statements one thread does alone: what is known of indices, and for how long.
#include <gtest/gtest.h>

#include "driver/build_plan.h"
#include "driver/canonical.h"
#include "driver/cuda_engine.h"
#include "passes/pipeline.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

std::string cuda_text(const std::string& text) {
  Dump dump("guards");
  const std::string all = write_cuda(passes::run_passes(order_symbols(parse_program(text).box().program),
                                                        passes::all_passes(), [](auto&&...) {}),
                                     "sm_90a", dump)
                              .kernel.text;
  return all.substr(all.find("__global__"));
}
int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}
std::string launch(const std::string& parameters, const std::string& body, int threads = 32) {
  const std::string m = parameters.find("[M") != std::string::npos ? "  symbol M: int32\n" : "";
  return "program guarded {\n" + m + "  symbol N: int32\n" + parameters +
         "  launch guarded(bx: 1) threads(tx: " + std::to_string(threads) + ") {\n" + body + "  }\n}\n";
}

// The first elements of a memory of ones, behind which there are more: what is read out of bounds must be zero.
void expect_on_all_engines(const std::string& text, const std::vector<int64_t>& numbers,
                           const std::vector<double>& wanted) {
  const NDArray memory = NDArray::zeros({4096}, f32);
  memory.assign_floats(std::vector<double>(4096, 1));
  const int64_t shape[] = {64};
  const NDArray a = NDArray::borrow(memory.data(), shape, f32);
  for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator}) {
    const Executable kernel = compile(parse_program(text), {.engine = engine});
    SCOPED_TRACE(kernel.engine());
    const NDArray out = NDArray::zeros({static_cast<int64_t>(wanted.size())}, f32);
    std::vector<Argument> arguments{a, out};
    for (int64_t n : numbers) arguments.emplace_back(n);
    kernel.call(arguments);
    EXPECT_EQ(out.to_floats(), wanted);
  }
}

TEST(Guards, WhatIsKnownOfAnElementEndsWhereItChanges) {
  const std::string head =
      "program changed {\n  symbol N: int32\n  param A: float32[N]\n  param out: float32[4]\n  param l: int32\n"
      "  launch changed(bx: 1) threads(tx: 64) {\n    local x: int32\n    x = l\n";
  const auto run = [&](const std::string& body, const std::vector<double>& wanted) {
    SCOPED_TRACE(body);
    expect_on_all_engines(head + body + "  }\n}\n", {60}, wanted);
  };
  run("    assume x >= 0 and x < N\n    out[0] = A[x]\n    x = x + 100\n    out[1] = A[x]\n", {1, 0, 0, 0});
  run("    if x < N {\n      out[0] = A[x]\n      x = x + 7\n      out[1] = A[x]\n    }\n", {1, 0, 0, 0});
  run("    assume x >= 0 and x < N\n    for i in 0..4 {\n      out[i] = A[x]\n      x = x + 2\n    }\n", {1, 1, 0, 0});
  run("    if x >= 0 and x < N {\n      if tx == 0 {\n        for i in 0..4 {\n          out[i] = A[x]\n          x = "
      "x + 2\n"
      "        }\n      }\n    }\n",
      {1, 1, 0, 0});
}

// A branch around each load would have the next one wait for what it brings: a residual of a ragged product came
// element by element, 32 waits for memory one behind the other.
TEST(Guards, LoadsUnderConditionsAreNoBranches) {
  const std::string rows = cuda_text(
      "program p {\n  param A: float16[100, 72]\n  param B: float16[100, 72]\n"
      "  launch p(bx: 2, by: 2) threads(tx: 128) {\n    fragment c: float32[64, 64]\n"
      "    map i in 64, j in 64 {\n      c[i, j] = float32(A[by * 64 + i, bx * 64 + j]) * 2.0\n    }\n"
      "    copy from=c to=B[by * 64 : 64, bx * 64 : 64]\n  }\n}\n");
  EXPECT_EQ(count(rows, "tw_load_if<false>("), 1) << rows;  // B may be A: a call may hand in one for both
  EXPECT_EQ(count(rows, " if ("), 1) << rows;               // around the store
  const std::string chosen = cuda_text(
      "program p {\n  param A: float32[100]\n  param B: float32[64]\n  launch p(bx: 1) threads(tx: 64) {\n"
      "    B[tx] = select(tx > 0, A[tx - 1] * 2.0, A[tx + 40])\n  }\n}\n");
  EXPECT_EQ(count(chosen, "tw_load_or_zero<true>("), 2) << chosen;
  EXPECT_EQ(count(chosen, "?"), 0) << chosen;
}

// Whose place is read from memory is asked only where its condition is true.
TEST(Guards, PlacesThatAreReadStayInTheirBranch) {
  const std::string text = cuda_text(
      "program p {\n  param I: int32[64]\n  param A: float32[100]\n  param B: float32[64]\n"
      "  launch p(bx: 1) threads(tx: 64) {\n    shared s: int32[64]\n    s[tx] = I[tx]\n    sync block\n"
      "    local x: float32\n    x = 0.0\n    if tx < 30 {\n      x = A[s[tx]]\n    }\n    B[tx] = x\n  }\n}\n");
  EXPECT_EQ(count(text, "tw_load_if"), 0) << text;
}

// What a function is given is computed whether it is wanted or not: an element that is guarded comes under its guard.
TEST(Guards, ChoicesByFunctionsReadNothing) {
  plan::Limits limits;
  limits.plain_integers = true;
  Dump dump("guards");
  const std::string text =
      write_cuda(
          canonical(parse_program("program chosen {\n  param A: int32[100]\n  param out: int32[32]\n"
                                  "  param l: int32\n  launch chosen(bx: 1) threads(tx: 32) {\n"
                                  "    out[tx] = select(l > 3, A[tx + l], 7) + select(A[tx] > 3, l + 1, l)\n  }\n}\n")
                        .box()
                        .program),
          "sm_90a", dump, limits)
          .kernel.text;
  const std::string kernel = text.substr(text.find("__global__"));
  const size_t call = kernel.find("tw_choose(");
  ASSERT_NE(call, std::string::npos) << kernel;
  EXPECT_EQ(count(kernel, "tw_choose("), 2) << kernel;  // what is not loaded is zero by itself
  EXPECT_NE(kernel.find(", (int32_t)((uint32_t)l + 1u), l)", call), std::string::npos) << kernel;
  EXPECT_NE(kernel.find("tw_load_or_zero<true>(3 < l && (uint64_t)((int64_t)tx + l) < 100ull, &A["), std::string::npos)
      << kernel;
}

TEST(Guards, AnIndexThatIsCertainlyOutsideReadsNothing) {
  expect_on_all_engines(
      "program outside {\n  symbol N: int32\n  param A: float32[N]\n  param out: float32[32]\n  param l: int32\n"
      "  launch outside(bx: 1) threads(tx: 32) {\n    map i in 4, j in 8 {\n      out[32] = A[i]\n"
      "      out[i * 8 + j] = A[i + l] + A[N] + A[-1]\n    }\n  }\n}\n",
      {30}, std::vector<double>(32, 1));
}

// Each name has the one before it twice: put into each other they would be of 2^40 parts.
TEST(Guards, NamesOfNamesAreNotPutIntoEachOther) {
  std::string names = "      x0: int32 = (i + l) % 7\n";
  for (int k = 1; k <= 40; ++k) {
    const std::string before = "x" + std::to_string(k - 1);
    names += "      x" + std::to_string(k) + ": int32 = (" + before + " * " + before + " + " + before + ") % 5\n";
  }
  expect_on_all_engines(
      "program names {\n  param A: float32[64]\n  param out: float32[4]\n  param l: int32\n"
      "  launch names(bx: 1) threads(tx: 32) {\n    map i in 4 {\n" +
          names + "      out[i] = A[x40]\n    }\n  }\n}\n",
      {3}, {1, 1, 1, 1});
}

// An offset of 64 bits whose sum with the variables of a map wraps around.
TEST(Guards, AnOffsetAtTheEndOf64BitsIsOutside) {
  const NDArray a = NDArray::zeros({64}, f32);
  a.assign_floats(std::vector<double>(64, 1));
  for (const int64_t offset : {INT64_MAX, INT64_MAX - 3, INT64_MIN, INT64_MIN + 3, int64_t{60}})
    for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator}) {
      const NDArray out = NDArray::zeros({8}, f32);
      const Executable kernel = compile(
          parse_program("program offset {\n  param A: float32[64]\n  param out: float32[8]\n  param l: int64\n"
                        "  launch offset(bx: 1) threads(tx: 32) {\n    map i in 8 {\n      out[i] = A[l + int64(i)]\n"
                        "    }\n  }\n}\n"),
          {.engine = engine});
      kernel.call(std::vector<Argument>{a, out, offset});
      std::vector<double> wanted(8, 0);
      for (int64_t i = 0; i < 4 && offset == 60; ++i) wanted[static_cast<size_t>(i)] = 1;
      EXPECT_EQ(out.to_floats(), wanted) << offset;
    }
}

TEST(Guards, WhatABranchAssumesIsNotKnownBehindIt) {
  for (const char* branches :
       {"if l < 1000 {\n      out[0] = 1.0\n    } else {\n      assume l >= 0 and l < N\n    }\n",
        "if l < 1000 {\n      out[0] = 1.0\n    }\n    for i in 0..(l - 100) {\n      assume l >= 0 and l < N\n    "
        "}\n"})
    expect_on_all_engines(
        "program branches {\n  symbol N: int32\n  param A: float32[N]\n  param out: float32[4]\n  param l: int32\n"
        "  launch branches(bx: 1) threads(tx: 64) {\n    " +
            std::string(branches) + "    out[1] = A[l]\n  }\n}\n",
        {100}, {1, 0, 0, 0});
}

TEST(Guards, TurnsOfALoopAreWithinItsExtent) {
  const std::string text =
      launch("  param A: float32[M, N]\n  param B: float32[M, N]\n",
             "    if tx < M {\n      for j in 0..N {\n        B[tx, j] = A[tx, j] + 1.0\n      }\n    }\n");
  EXPECT_EQ(count(cuda_text(text), "if ("), 1) << cuda_text(text);
}

TEST(Guards, AMinimumIsTheSideThatItCanOnlyBe) {
  const auto with = [](const std::string& other) {
    return launch("  param A: float32[M, N]\n  param B: float32[M, N]\n",
                  "    for j in 0..N {\n      i: int32 = min(j + " + other +
                      ", tx + 2)\n      assume i >= 0 and i < M\n"
                      "      B[tx, j] = A[i, j]\n    }\n");
  };
  EXPECT_EQ(count(cuda_text(with("233")), "if ("), 0) << cuda_text(with("233"));
  EXPECT_EQ(count(cuda_text(with("34")), "if ("), 0);
  EXPECT_EQ(count(cuda_text(with("33")), "if ("), 0);  // of thread 31 both sides are the least
  EXPECT_EQ(count(cuda_text(with("32")), "if ("), 1);
}

TEST(Guards, WhatHoldsInEveryLaneHoldsForAllOfThem) {
  const auto with = [](const std::string& assumption) {
    return launch(
        "  param A: float32[128, N]\n  param B: float32[128, N]\n  assume N % 4 == 0\n",
        "    for i in 0..4 vectorized {\n" + assumption + "      B[tx, tx * 4 + i] = A[tx, tx * 4 + i]\n    }\n");
  };
  const std::string text = cuda_text(with("      assume tx * 4 + i < N\n"));
  EXPECT_EQ(count(text, "if ("), 0) << text;
  EXPECT_EQ(count(text, "float4"), 4) << text;
  const std::string guarded = cuda_text(with(""));
  EXPECT_EQ(count(guarded, "if (") + count(guarded, "tw_load_if"), 2) << guarded;
}

TEST(Guards, LanesOfOneWarpStoreAlike) {
  const auto fills = [](int threads, const std::string& value) {
    return launch("  param A: float32[N]\n  param l: int32\n",
                  "    for i in 0..4 {\n      A[l + i] = " + value + "\n    }\n", threads);
  };
  const std::string alike = cuda_text(fills(32, "0.0")), once = cuda_text(fills(64, "0.0"));
  EXPECT_EQ(count(alike, "tx == 0"), 0) << alike;
  EXPECT_EQ(count(once, "tx == 0"), 1) << once;
  EXPECT_EQ(count(cuda_text(fills(32, "float32(i)")), "tx == 0"), 1);  // a lane that is late would undo a later turn
  // No barrier between the turns: nobody else touches what they store.
  EXPECT_EQ(count(alike, "__sync") + count(once, "__sync"), 0) << alike << once;
  // What others touch is stored once, between barriers.
  const std::string read =
      "  shared s: float32[4]\n  s[0] = 1.0\n  out[0] = A[0] + 2.0\n  if tx < 4 {\n    out[tx] = s[0] + out[tx]\n  }\n";
  for (int threads : {32, 64}) {
    const std::string text =
        "program reads {\n  param A: float32[64]\n  param out: float32[4]\n  launch reads(bx: 1) threads(tx: " +
        std::to_string(threads) + ") {\n" + read + "  }\n}\n";
    EXPECT_EQ(count(cuda_text(text), "tx == 0"), 2) << cuda_text(text);
    EXPECT_GE(count(cuda_text(text), "__sync"), 1);
    expect_on_all_engines(text, {}, {4, 1, 1, 1});
  }
}

TEST(Guards, OneThreadsStoresNeedNoBarrierBetweenThem) {
  const std::string body =
      "    shared s: float32[4]\n    s[0] = A[3]\n    s[1] = s[0] + 1.0\n    out[0] = s[1]\n    out[0] = out[0] + "
      "s[0]\n";
  const std::string text =
      "program alone {\n  param A: float32[64]\n  param out: float32[4]\n"
      "  launch alone(bx: 1) threads(tx: 64) {\n" +
      body;
  EXPECT_EQ(count(cuda_text(text + "  }\n}\n"), "__sync"), 0) << cuda_text(text + "  }\n}\n");
  expect_on_all_engines(text + "  }\n}\n", {}, {3, 0, 0, 0});
  const std::string read_by_all = text + "    if tx < 4 {\n      out[tx] = out[tx] + s[1]\n    }\n  }\n}\n";
  EXPECT_EQ(count(cuda_text(read_by_all), "__sync"), 1) << cuda_text(read_by_all);
  expect_on_all_engines(read_by_all, {}, {5, 2, 2, 2});
}

}  // namespace
}  // namespace tilewright
