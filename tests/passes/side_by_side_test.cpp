// Blocks that share rows, before and after side_by_side(); and what they compute.
#include "passes/loops/side_by_side.h"

#include <gtest/gtest.h>

#include "codegen/cpu_kernel.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace tilewright::passes {
namespace {

// Rows of X in parts of 64: each divided by its sum. `part` and `row`: the block's indices.
std::string text(const std::string& blocks = "256", const std::string& index = "row * 4 + i, int64(bx) * 64 + j",
                 const std::string& scalars = "        one = 1.0 / s\n", const std::string& factor = "one") {
  return "loop program p {\n  param X: float32[256, 256]\n  param Y: float32[256, 256]\n  launch p(bx: 4) threads(tx: "
         "32) {\n    shared t: float32[1, 64]\n    local lanes: float32[16]\n    local s: float32\n    local one: "
         "float32\n    for block: int64 in 0.." +
         blocks +
         " grid {\n      bx: int32 = int32(block % 4)\n      row: int64 = block // 4\n      for i: int64 in 0..4 {\n"
         R"(        for lane: int64 in 0..16 vectorized {
          lanes[lane] = 0.0
        }
        for chunk: int64 in 0..4 {
          for lane: int64 in 0..16 vectorized {
            j: int64 = chunk * 16 + lane
            t[int64(0), j] = X[)" +
         index + R"(]
            lanes[lane] = lanes[lane] + t[int64(0), j]
          }
        }
        s = lanes[int64(0)]
)" + scalars +
         R"(        for n: int64 in 0..64 vectorized {
          Y[row * 4 + i, int64(bx) * 64 + n] = t[int64(0), n] * )" +
         factor + "\n        }\n      }\n    }\n  }\n}\n";
}
std::string together(const std::string& program) {
  const ir::LoopProgram out = side_by_side(ir::parse_loop_program(program, "p.tile"));
  ir::check_valid(out, "side_by_side");
  return ir::print(out);
}
void expect_unchanged(const std::string& program) {
  EXPECT_EQ(together(program), ir::print(ir::parse_loop_program(program, "p.tile")));
}

TEST(SideBySide, AllPartsOfARowTakeAStepBeforeAnyTakesTheNext) {
  const std::string out = together(text());
  EXPECT_NE(out.find("for block: int64 in 0..64 grid {\n      row: int64 = block\n      for i: int64 in 0..4 {\n"
                     "        for part: int64 in 0..4 {\n          for lane: int64 in 0..16 vectorized {"),
            out.npos)
      << out;
  EXPECT_NE(out.find("t_1[part, int64(0), j] = X[row * 4 + i, part * 64 + j]"), out.npos) << out;
  EXPECT_NE(out.find("          s_1[part] = lanes[int64(0)]\n        }\n        for part: int64 in 0..4 vectorized {\n"
                     "          one_1[part] = 1.0 / s_1[part]\n        }\n"
                     "        for part: int64 in 0..4 {\n          for n: int64 in 0..64 vectorized {\n"
                     "            Y[row * 4 + i, part * 64 + n] = t_1[part, int64(0), n] * one_1[part]\n"),
            out.npos)
      << out;
  EXPECT_NE(out.find("shared t_1: float32[4, 1, 64]"), out.npos) << out;
}
TEST(SideBySide, BlocksStayApart) {
  expect_unchanged(text("252"));                                     // too few would be left
  expect_unchanged(text("256", "int64(bx) * 64 + j, row * 4 + i"));  // parts are below one another
  expect_unchanged(text("256", "row * 4 + i, j * 4 + int64(bx)"));   // elements take turns
  expect_unchanged(
      text("256", "row * 4 + i, int64(bx) * 64 + j", "        half: float32 = s / 2.0\n", "half"));  // a name stays
  expect_unchanged(text("256", "row * 4 + i, int64(bx) * 64 + j", "", "s + lanes[int64(3)]"));       // the lanes stay
}

// 64 blocks of rows, four parts each; with a scale a part, and a conversion to 8 bits.
TEST(SideBySide, ResultsAreTheInterpreters) {
  const Program program = parse_program(R"(program scaled {
  param X: bfloat16[256, 256]
  param Q: float8_e4m3fn[256, 256]
  param S: float32[256, 4]
  launch scaled(bx: 4, by: 64) threads(tx: 32) {
    fragment x: float32[4, 64]
    fragment largest: float32[4]
    copy from=X[by * 4 : 4, bx * 64 : 64] to=x
    reduce absmax from=x to=largest dim=1
    map i in 4 {
      S[by * 4 + i, bx] = max(largest[i], 0.0001) / 448.0
      largest[i] = 448.0 / max(largest[i], 0.0001)
    }
    map i in 4, j in 64 {
      x[i, j] = x[i, j] * largest[i]
    }
    copy from=x to=Q[by * 4 : 4, bx * 64 : 64]
  }
}
)",
                                        "scaled.tile");
  EXPECT_NE(cpu_text_of(program).find("for (int64_t part = 0ll; part < 4ll; ++part)"), std::string::npos)
      << cpu_text_of(program);
  expect_same(program, {ramp({256, 256}, bf16, 0.37), NDArray::zeros({256, 256}, e4m3), NDArray::zeros({256, 4}, f32)});
}

}  // namespace
}  // namespace tilewright::passes
