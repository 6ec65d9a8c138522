// The fuzzer: what it makes is valid, the same from one seed, and runs the same everywhere.
#include <gtest/gtest.h>

#include "driver/fuzz/check.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "runtime/cuda_test_driver.h"
#include "runtime/nvrtc.h"
#include "tilewright/diagnostic.h"

namespace tilewright::fuzz {
namespace {

constexpr auto contains_gemm = [](const ir::TileProgram& program) {
  bool found = false;
  for (const ir::Launch& launch : program.launches)
    ir::walk(launch.body, [&](const ir::Stmt& s) { found = found || s.as<ir::Gemm>(); });
  return found;
};

int64_t count_statements(const ir::TileProgram& program) {
  int64_t n = 0;
  for (const ir::Launch& launch : program.launches) ir::walk(launch.body, [&](const ir::Stmt&) { ++n; });
  return n;
}

TEST(Fuzz, OneSeedIsOneProgram) {
  std::set<std::string> texts;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const Sample a = generate(seed), b = generate(seed);
    EXPECT_EQ(ir::print(a.program), ir::print(b.program)) << seed;
    ASSERT_EQ(a.arguments.size(), b.arguments.size());
    for (size_t i = 0; i < a.arguments.size(); ++i)
      EXPECT_EQ(a.arguments[i].array.to_ints(), b.arguments[i].array.to_ints()) << seed;
    texts.insert(ir::print(a.program));
  }
  EXPECT_EQ(texts.size(), 50u);
}

TEST(Fuzz, ValidProgramsRunOnTheInterpreterAndKeepTheirText) {
  for (uint64_t seed = 1000; seed < 1200; ++seed) {
    const Sample s = generate(seed);
    const auto finding = check(s.program, s.arguments, Engines::Interpreter);
    EXPECT_FALSE(finding) << "seed " << seed << ": " << name_of(finding->kind) << ": " << finding->message << "\n"
                          << ir::print(s.program);
  }
}

TEST(Fuzz, TheEnginesAgree) {
  for (uint64_t first = 1000; first < 1200; first += 25) {
    std::vector<Sample> samples;
    for (uint64_t seed = first; seed < first + 25; ++seed) samples.push_back(generate(seed));
    const auto findings = check_all(samples, Engines::BothQuickly);
    for (size_t i = 0; i < samples.size(); ++i)
      EXPECT_FALSE(findings[i]) << "seed " << first + i << ": " << name_of(findings[i]->kind) << ": "
                                << findings[i]->message;
  }
}

TEST(Fuzz, InvalidProgramsAreRefusedWithACodeAndAPlace) {
  std::set<std::string> ways;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    std::string what;
    const std::string text = spoil(ir::print(generate(seed).program), random, what);
    ways.insert(what);
    const auto finding = check_refused(text, what);
    EXPECT_FALSE(finding) << "seed " << seed << ": " << name_of(finding->kind) << ": " << finding->message << "\n"
                          << text;
  }
  EXPECT_GE(ways.size(), 25u);
}

TEST(Fuzz, AProgramThatDiffersIsFound) {
  // The same program with other data: what the comparison sees when an engine is wrong.
  uint64_t seed = 1;
  while (!contains_gemm(generate(seed).program)) ++seed;
  Sample s = generate(seed);
  EXPECT_FALSE(check(s.program, s.arguments, Engines::Interpreter));
  // An argument of another shape is a failure of the run, not a pass.
  s.arguments[0].array = NDArray::zeros({1, 1, 1}, s.arguments[0].array.dtype());
  const auto finding = check(s.program, s.arguments, Engines::Interpreter);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Interpreter);
}

// The stand-in's kernels do nothing, and its memory is the process's own: what comes back is what was sent.
TEST(Fuzz, ADeviceThatComputesNothingIsFound) {
  try {
    runtime::Nvrtc::get();
  } catch (const CompileError& e) {
    GTEST_SKIP() << e.what();
  }
  runtime::cuda::FakeDriver driver;
  int differ = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Sample s = generate(seed);
    const auto finding = check(s.program, s.arguments, Engines::Cuda);
    ASSERT_TRUE(finding) << seed;
    EXPECT_TRUE(finding->kind == Finding::Kind::Mismatch || finding->kind == Finding::Kind::Refused)
        << seed << ": " << name_of(finding->kind) << ": " << finding->message;
    differ += finding->kind == Finding::Kind::Mismatch;
  }
  EXPECT_GE(differ, 4);
  driver->failing = "cuLaunchKernelEx", driver->failing_result = 700;
  const Sample s = generate(1);
  const auto finding = check(s.program, s.arguments, Engines::Cuda);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->kind, Finding::Kind::Cuda) << finding->message;
}

TEST(Fuzz, MinimizingKeepsWhatIsLookedForAndLittleElse) {
  int tried = 0;
  for (uint64_t seed = 1; tried < 5; ++seed) {
    const ir::TileProgram program = generate(seed).program;
    if (!contains_gemm(program) || count_statements(program) < 12) continue;
    ++tried;
    const ir::TileProgram small = minimize(program, contains_gemm);
    EXPECT_TRUE(contains_gemm(small));
    EXPECT_TRUE(ir::verify(small).empty());
    EXPECT_EQ(count_statements(small), 1) << ir::print(small);
    EXPECT_TRUE(small.params.empty()) << ir::print(small);
    EXPECT_EQ(ir::print(minimize(program, contains_gemm)), ir::print(small));
  }
}

// A chain: the view goes first, then its root and what their sizes use; a second launch and an option go whole.
TEST(Fuzz, MinimizingDropsDeclarationsThatOthersNeeded) {
  const ir::TileProgram program = ir::parse(R"(program p {
  symbol M: int32
  param A: float32[64, 64]
  param B: float32[M]
  global W: float32[M] workspace
  global V: int32[M] view=W offset=0
  assume M > 3
  option contract=false
  launch first(bx: 4) threads(tx: 32) {
    shared a: float32[16, 16]
    shared raw: int32[16, 16] view=a offset=0
    fragment c: float32[16, 16]
    fill to=a value=1.0
    gemm a=a b=a c=c clear=true
    raw[0, 0] = V[0]
    copy from=c to=A[0 : 16, 0 : 16]
  }
  launch second(bx: 4) threads(tx: 32) {
    shared b: float32[16]
    fill to=b value=2.0
    copy from=b to=B[bx * 16 : 16]
  }
}
)",
                                            "p.tile");
  const std::string small = ir::print(minimize(program, contains_gemm));
  for (const char* word : {"symbol", "param", "global", "assume", "option", "second", "raw", "fill", "copy"})
    EXPECT_EQ(small.find(word), std::string::npos) << word << "\n" << small;
  EXPECT_NE(small.find("gemm"), std::string::npos);
}

TEST(Fuzz, ArgumentsOfAMinimizedProgramAreThoseOfTheOriginal) {
  const Sample s = generate(7);
  ir::TileProgram fewer = s.program;
  fewer.params.erase(fewer.params.begin());
  const std::vector<Argument> arguments = arguments_for(fewer, 7);
  ASSERT_EQ(arguments.size() + 1, s.arguments.size());
  for (size_t i = 0; i < arguments.size(); ++i)
    EXPECT_EQ(arguments[i].array.to_ints(), s.arguments[i + 1].array.to_ints());
}

}  // namespace
}  // namespace tilewright::fuzz
