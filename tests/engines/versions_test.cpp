// A program of symbols is two: what is fast for most calls, and what is right for all. Which one a call takes shows,
// and both compute the same.
#include <gtest/gtest.h>

#include <cstring>

#include "driver/build_plan.h"
#include "driver/canonical.h"
#include "driver/explain.h"
#include "driver/versions.h"
#include "interpreter/run.h"
#include "ir/print.h"
#include "support/warning.h"
#include "tilewright/compile.h"
#include "tilewright/language.h"

namespace tilewright {
namespace {

Program matmul(Value M, Value N, Value K) {
  Tensor A("A", {M, K}, f16), B("B", {K, N}, f16), C("C", {M, N}, f32);
  return prim_func("matmul", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, 64), ceildiv(M, 64)}, {.threads = 128})) {
      auto A_shared = alloc_shared({64, 32}, f16), B_shared = alloc_shared({32, 64}, f16);
      auto C_local = alloc_fragment({64, 64}, f32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, 32), {.num_stages = 3})) {
        copy(A(by * 64, k * 32), A_shared);
        copy(B(k * 32, bx * 64), B_shared);
        gemm(A_shared, B_shared, C_local);
      }
      copy(C_local, C(by * 64, bx * 64));
    }
  });
}
Program matmul() { return matmul(dynamic("M"), dynamic("N"), dynamic("K")); }

NDArray whole_numbers(std::initializer_list<int64_t> shape, DType type) {
  return interpreter::range_array(shape, type, 0.0625, -3);
}
// What a call writes.
NDArray product(const Executable& kernel, int64_t m, int64_t n, int64_t k) {
  const NDArray c = whole_numbers({m, n}, f32);
  kernel(whole_numbers({m, k}, f16), whole_numbers({k, n}, f16), c);
  return c;
}
bool same_bits(const NDArray& a, const NDArray& b) {
  return std::memcmp(a.data(), b.data(), static_cast<size_t>(a.size()) * 4) == 0;
}

TEST(Versions, CallsTakeTheFastOneWhereItsAssumptionsHold) {
  const Executable kernel = compile(matmul(), {.engine = Engine::Simulator, .arch = "sm_90a"});
  const Executable reference = compile(matmul(), {.engine = Engine::Interpreter});
  ASSERT_GE(kernel.assumptions().size(), 3u);
  EXPECT_EQ(kernel.assumptions()[0], "K % 8 == 0");
  EXPECT_EQ(kernel.assumptions()[1], "N % 8 == 0");
  EXPECT_TRUE(reference.assumptions().empty());
  struct Call {
    int64_t m, n, k;
    bool fast;
  };
  int64_t general = 0;
  for (const Call& c : {Call{130, 72, 40, true},
                        {65, 71, 40, false},
                        {65, 64, 33, false},
                        {3, 8, 8, true},
                        {64, 64, 96, true},
                        {1, 1, 1, false}}) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", c.m, c.n, c.k));
    EXPECT_TRUE(same_bits(product(kernel, c.m, c.n, c.k), product(reference, c.m, c.n, c.k)));
    general += !c.fast;
    EXPECT_EQ(kernel.general_calls(), general);
  }
}

// What is made for other calls, once for each of the ways in which they are others.
TEST(Versions, OthersKeepWhatHoldsOfTheirCalls) {
  struct Nothing final : runtime::Callee {
    void run(const runtime::BoundCall&, runtime::CallReport&) override {}
  };
  const ir::TileProgram program = canonical(matmul().box().program);
  std::vector<std::string> made;
  const Executable kernel = with_fast_version(program, build_plan(program), "test", [&](const ir::TileProgram& p) {
    std::string assumed;
    for (const ir::Assumption& a : p.assumptions) assumed += ir::print(a.condition, p) + "; ";
    made.push_back(assumed);
    return runtime::Version{build_plan(p), std::make_unique<Nothing>(), ""};
  });
  ASSERT_EQ(made.size(), 1u);
  const std::string rest = made[0].substr(made[0].find("N % 8 == 0; ") + 12);
  EXPECT_EQ(made[0], "K % 8 == 0; N % 8 == 0; " + rest);
  const auto call = [&](int64_t n, int64_t k) { product(kernel, 64, n, k); };
  call(64, 64), call(72, 8);
  EXPECT_EQ(made.size(), 1u);
  call(65, 64), call(66, 72), call(65, 8);
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[1], "K % 8 == 0; N % 8 != 0; " + rest);
  call(64, 65), call(65, 65), call(1, 1);
  ASSERT_EQ(made.size(), 4u);
  EXPECT_EQ(made[2], "K % 8 != 0; N % 8 == 0; " + rest);
  EXPECT_EQ(made[3], "K % 8 != 0; N % 8 != 0; " + rest);
}

// Rows of the result that are no whole pieces leave the operands to the loader.
TEST(Versions, ResultsOfOddRowsAreNoReasonToLoadByThreads) {
  const Value M = dynamic("M"), N = dynamic("N"), K = dynamic("K");
  Tensor A("A", {M, K}, f16), B("B", {N, K}, f16), C("C", {M, N}, f16);
  const Program program = prim_func("product", {A, B, C}, [&] {
    for (auto [bx, by] : Kernel({ceildiv(N, 128), ceildiv(M, 128)}, {.threads = 256})) {
      auto A_shared = alloc_shared({128, 64}, f16), B_shared = alloc_shared({128, 64}, f16);
      auto C_local = alloc_fragment({128, 128}, f32);
      clear(C_local);
      for (auto k : Pipelined(ceildiv(K, 64), {.num_stages = 3})) {
        copy(A(by * 128, k * 64), A_shared);
        copy(B(bx * 128, k * 64), B_shared);
        gemm(A_shared, B_shared, C_local, {.transpose_B = true});
      }
      copy(C_local, C(by * 128, bx * 128));
    }
  });
  const auto said = [&](int64_t n, int64_t k) {
    return to_text(explain_gpu(program.box().program, {{"M", 4096}, {"N", n}, {"K", k}}, "sm_90a", false));
  };
  EXPECT_NE(said(1501, 4096).find("a warp loads by TMA"), std::string::npos) << said(1501, 4096);
  EXPECT_NE(said(1501, 4096).find("it does not hold that: N % 8 == 0\n"), std::string::npos);
  EXPECT_EQ(said(1504, 4097).find("a warp loads by TMA"), std::string::npos);
}

// Where a tensor begins is a property of the call too.
TEST(Versions, LinesOfAPlanThatOnlyTheFastOneHasAreLeftOutOfOthers) {
  const Executable kernel =
      compile(matmul(), {.engine = Engine::Simulator, .arch = "sm_90a", .plan = "work split k=3"});
  const Executable reference = compile(matmul(), {.engine = Engine::Interpreter});
  std::vector<std::string> said;
  const WarningSink before = replace_warning_sink([&](const Diagnostic& d) { said.push_back(d.to_string()); });
  EXPECT_TRUE(same_bits(product(kernel, 65, 72, 200), product(reference, 65, 72, 200)));  // seven turns by three
  EXPECT_TRUE(same_bits(product(kernel, 65, 72, 40), product(reference, 65, 72, 40)));    // two: a block has none
  EXPECT_TRUE(said.empty());
  EXPECT_TRUE(same_bits(product(kernel, 65, 71, 201), product(reference, 65, 71, 201)));
  replace_warning_sink(before);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("TW8206"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("run without the lines of the plan"), std::string::npos) << said[0];
}

TEST(Versions, AnAddressThatIsNotAlignedTakesTheGeneralOne) {
  Value N = dynamic("N");
  Tensor X("X", {N}, f32), Y("Y", {N}, f32);
  const Program twice = prim_func("twice", {X, Y}, [&] {
    for (auto bx : Kernel({ceildiv(N, 256)}, {.threads = 64}))
      for (auto i : Parallel(256)) Y(bx * 256 + i) = X(bx * 256 + i) * 2;
  });
  const Executable kernel = compile(twice, {.engine = Engine::Simulator, .arch = "sm_90a"});
  const NDArray memory = whole_numbers({1032}, f32);
  for (const int64_t first : {0, 4, 1, 2}) {
    const int64_t shape[] = {1024};
    const NDArray x = NDArray::borrow(memory.data(), shape, f32, {}, first * 4);
    const NDArray y = NDArray::zeros({1024}, f32);
    const int64_t before = kernel.general_calls();
    kernel(x, y);
    EXPECT_EQ(kernel.general_calls() - before, first % 4 == 0 ? 0 : 1);
    for (int64_t i : {0, 1, 517, 1023}) EXPECT_EQ(y.get_float({i}), 2 * memory.get_float({first + i}));
  }
}

TEST(Versions, ExplainSaysWhatIsAssumed) {
  const Program program = matmul();
  const ir::TileProgram& p = program.box().program;
  const std::string fast = to_text(explain_gpu(p, {}, "sm_90a", false));
  EXPECT_NE(fast.find("assumed of a call, which else takes a general version: K % 8 == 0, N % 8 == 0"),
            std::string::npos)
      << fast;
  EXPECT_NE(fast.find("loader"), std::string::npos) << fast;
  const std::string general = to_text(explain_gpu(p, {{"M", 64}, {"N", 65}, {"K", 64}}, "sm_90a", false));
  EXPECT_NE(general.find("the general version, for of this call it does not hold that: "), std::string::npos)
      << general;
}

}  // namespace
}  // namespace tilewright
