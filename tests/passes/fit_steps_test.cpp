// Loops of products whose steps are shorter or longer than a row of 128 bytes: several at a time, or half of one, with
// the same result bit for bit.
#include "plan/fit_steps.h"

#include "driver/cuda_engine.h"
#include "passes/planned.h"

namespace tilewright {
namespace {

struct Shape {
  int64_t m = 128, n = 128, k = 256, step = 32;
  int stages = 3;
  const char* type = "float16";
  int rows = 64, columns = 64, threads = 128;
};

std::string product(const Shape& s, bool symbolic = false, int64_t turns = 0) {
  const std::string k = symbolic ? "K * 8" : std::to_string(s.k);
  const std::string extent = turns > 0  ? std::to_string(turns)
                             : symbolic ? fmt::format("(K * 8 + {}) // {}", s.step - 1, s.step)
                                        : std::to_string((s.k + s.step - 1) / s.step);
  return fmt::format(
      "program product {{\n{}  param A: {}[{}, {}]\n  param B: {}[{}, {}]\n  param C: {}[{}, {}]\n"
      "  launch product(bx: {}, by: {}) threads(tx: {}) {{\n    shared As: {}[{}, {}]\n    shared Bs: {}[{}, {}]\n"
      "    fragment c: {}[{}, {}]\n    fill to=c value={}\n    for k in 0..{} pipelined(stages={}) {{\n"
      "      copy from=A[by * {} : {}, k * {} : {}] to=As\n      copy from=B[bx * {} : {}, k * {} : {}] to=Bs\n"
      "      gemm a=As b=Bs c=c transpose_b=true\n    }}\n    copy from=c to=C[by * {} : {}, bx * {} : {}]\n  }}\n}}\n",
      symbolic ? "  symbol K: int32\n" : "", s.type, s.m, k, s.type, s.n, k,
      s.type == std::string("int8") ? "int32" : "float32", s.m, s.n, s.n / s.columns, s.m / s.rows, s.threads, s.type,
      s.rows, s.step, s.type, s.columns, s.step, s.type == std::string("int8") ? "int32" : "float32", s.rows, s.columns,
      s.type == std::string("int8") ? "0" : "0.0", extent, s.stages, s.rows, s.rows, s.step, s.step, s.columns,
      s.columns, s.step, s.step, s.rows, s.rows, s.columns, s.columns);
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
  EXPECT_EQ(fit_of(product({}, true)), wide);
  EXPECT_EQ(fit_of(product({.k = 512}, false, 9)), "");  // the tensor goes on
  EXPECT_EQ(fit_of(product({.k = 512}, false, 10)), wide);
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
