// Loops of products whose steps are shorter or longer than a row of 128 bytes: several at a time, or half of one, with
// the same result bit for bit.
#include "plan/fit_steps.h"

#include "driver/cuda_engine.h"
#include "passes/planned.h"
#include "simulator/lowered_programs.h"

namespace tilewright {
namespace {

struct Shape {
  int64_t m = 128, n = 128, k = 256, step = 32;
  int stages = 3;
  const char* type = "float16";
  int rows = 64, columns = 64, threads = 128;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << text;
  return text.replace(at, from.size(), to);
}
std::string product(const Shape& s) {
  const char* result = s.type == std::string("int8") ? "int32" : "float32";
  return simulator::Product{s.m,      s.n,   s.k,  s.rows, s.columns, s.step, s.threads,
                            s.stages, false, true, false,  false,     s.type, result}
      .text();
}
// Where the loop's turns are others than the tensors have.
std::string product_of_turns(const Shape& s, const std::string& turns) {
  return replaced(product(s), fmt::format("0..{} ", (s.k + s.step - 1) / s.step), fmt::format("0..{} ", turns));
}
// Where the depth is a symbol.
std::string product_of_any_depth(const Shape& s) {
  std::string text = product_of_turns(s, fmt::format("(K * 8 + {}) // {}", s.step - 1, s.step));
  for (const char* tensor : {"A", "B"})
    text = replaced(text, fmt::format("{}: {}[128, {}]", tensor, s.type, s.k),
                    fmt::format("{}: {}[128, K * 8]", tensor, s.type));
  return replaced(text, "{\n", "{\n  symbol K: int32\n");
}

std::string fit_of(const std::string& text) {
  const ir::TileProgram p = passes::canonicalize(ir::parse(text, "p.tile"));
  const passes::ThreadLowering lowered = passes::lower_to_threads(p, gpu_target("sm_90a"));
  EXPECT_TRUE(lowered.plans[0].has_loader()) << lowered.plans[0].why_no_loader();
  return plan::text(lowered.plans[0].fit, lowered.tiles);
}

TEST(FitSteps, AStepIs128BytesOfARow) {
  const std::string row = " of 'k' at a time: 128 bytes of a row of the operands in each";
  EXPECT_EQ(fit_of(product({.step = 64})), "");
  EXPECT_EQ(fit_of(product({.step = 32})), "2 steps" + row);
  EXPECT_EQ(fit_of(product({.step = 16})), "4 steps" + row);
  EXPECT_EQ(fit_of(product({.k = 1024, .step = 32, .type = "int8"})), "4 steps" + row);
  EXPECT_EQ(fit_of(product({.step = 128})), "");  // four slots of such steps fit
  EXPECT_EQ(fit_of(product({.m = 384, .n = 384, .k = 1024, .step = 128, .rows = 192, .columns = 192, .threads = 256})),
            "half of a step" + row);
}

// An odd number of steps has nothing but zeros behind it where the loop takes all of the tensor.
TEST(FitSteps, WhatLiesBehindTheLastStepIsZero) {
  const std::string wide = "2 steps of 'k' at a time: 128 bytes of a row of the operands in each";
  EXPECT_EQ(fit_of(product({.k = 288})), wide);
  EXPECT_EQ(fit_of(product({.k = 280})), wide);
  EXPECT_EQ(fit_of(product_of_any_depth({})), wide);
  EXPECT_EQ(fit_of(product_of_turns({.k = 512}, "9")), "");  // the tensor goes on
  EXPECT_EQ(fit_of(product_of_turns({.k = 512}, "10")), wide);
  EXPECT_EQ(fit_of(product({.k = 96})), "");  // too few to be under way
}

TEST(FitSteps, MeansTheSame) {
  for (const Shape& s :
       {Shape{}, Shape{.k = 280}, Shape{.k = 1024, .step = 16}, Shape{.k = 1024, .type = "int8"},
        Shape{.m = 384, .n = 192, .k = 512, .step = 128, .rows = 192, .columns = 192, .threads = 256}}) {
    const Planned p = planned(product(s));
    ASSERT_TRUE(p.plan.fit.any());
    const DType type = s.type == std::string("int8") ? i8 : f16;
    expect_same_meaning(p, {numbers({s.m, s.k}, type, 1), numbers({s.n, s.k}, type, 2)}, {s.m, s.n},
                        type == i8 ? i32 : f32);
  }
}

TEST(FitSteps, ALineKeepsTheProgramsOwn) {
  const auto lines = [](const std::string& line) {
    std::string text = product({});
    text.replace(text.find("threads(tx: 128)"), 16, "threads(tx: 128) plan(\"" + line + "\")");
    return fit_of(text);
  };
  EXPECT_EQ(lines("fit none"), "");
  EXPECT_NE(lines("fit wide_steps=k at_once=2"), "");
  EXPECT_THROW(lines("fit half_steps=k"), CompileError);
}

// A tile whose layout the program gives has the program's extents.
TEST(FitSteps, NotWhereTheProgramLaysTilesOut) {
  std::string text = product({});
  text.replace(text.find("shared As: float16[64, 32]"), 26, "shared As: float16[64, 32] layout=swizzled");
  const ir::TileProgram p = passes::canonicalize(ir::parse(text, "p.tile"));
  EXPECT_EQ(plan::fit_steps(p, p.launches[0], gpu_target("sm_90a"), {}), plan::Fit{});
}

}  // namespace
}  // namespace tilewright
