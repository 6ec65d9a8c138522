// Loop programs before and after choose_lanes(): text in, text out.
#include "passes/loops/choose_lanes.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"

namespace tilewright::passes {
namespace {

constexpr target::CpuFeatures kWide = {true, true, true, true};

std::string around(const std::string& loop) {
  return "loop program p {\n  param X: float32[64, 64]\n  param I: int32[64]\n  param H: float16[64, 64]\n  param F: "
         "bool[64, 64]\n  launch "
         "p(bx: "
         "4) threads(tx: 32) {\n    local t: float32\n    for block: int64 in 0..4 grid {\n" +
         loop + "    }\n  }\n}\n";
}
std::string loop(const std::string& extent, const std::string& kind, const std::string& store) {
  return "      for i: int64 in 0.." + extent + " " + kind + " {\n        " + store + "\n      }\n";
}
ir::LoopProgram parsed(const std::string& text) { return ir::parse_loop_program(around(text), "p.tile"); }
std::string chosen(const std::string& text, const target::CpuFeatures& features = kWide) {
  const ir::LoopProgram out = choose_lanes(parsed(text), features);
  ir::check_valid(out, "choose_lanes");
  return ir::print(out);
}
void expect_lanes(const std::string& extent, int lanes, const std::string& store) {
  EXPECT_EQ(chosen(loop(extent, "vectorized", store)),
            ir::print(parsed(loop(extent, "vectorized(lanes=" + std::to_string(lanes) + ")", store))));
}
// The first loop that has a function which wins stays for this reason; none: it has no such function.
void expect_none(const std::string& store, const std::string& why) {
  const std::string text = loop("64", "vectorized", store);
  EXPECT_EQ(chosen(text), ir::print(parsed(text)));
  const std::vector<LaneChoice> choices = lane_choices(parsed(text), kWide);
  ASSERT_EQ(choices.size(), why.empty() ? 0u : 1u);
  for (const LaneChoice& choice : choices) EXPECT_EQ(choice.why, why);
}

TEST(ChooseLanes, AFunctionThatWinsTakesAsManyAsDivideTheRange) {
  expect_lanes("64", 64, "X[block, i] = exp(X[block, i])");
  expect_lanes("48", 16, "X[block, i] = exp(X[block, i])");
  expect_lanes("50", 32, "X[block, i] = exp(X[block, i])");
}
TEST(ChooseLanes, AFormatOfMemoryWinsToo) {
  expect_lanes("64", 64, "H[block, i] = float16(X[block, i])");
  expect_lanes("64", 64, "t = float32(H[block, i])\n        X[block, i] = t * t");
}
TEST(ChooseLanes, WithoutSuchAFunctionTheCompilerHasTheLoop) {
  expect_none("X[block, i] = X[block, i] + 1.0", "");
  expect_none("H[block, i] = H[i, block]", "");
}
TEST(ChooseLanes, WhatIsNoMatterOfLanesStays) {
  expect_none("X[block, i] = exp(X[block, i]) + float32(i)", "the number of an iteration as a value");
  expect_none("X[i, block] = exp(X[block, i])", "");  // its place is looked at first
  expect_none("X[block, i] = exp(X[block, i])\n        X[i, block] = 1.0", "elements that do not lie side by side");
  expect_none("X[block, i] = exp(X[block, i]) * log(X[block, i])", "log_f32");
  expect_none("F[block, i] = float32(H[block, i]) > 1.0", "a condition that is kept");
}
TEST(ChooseLanes, NoneWithoutTheInstructions) {
  const std::string text = loop("64", "vectorized", "X[block, i] = exp(X[block, i])");
  EXPECT_EQ(chosen(text, {true, true, true}), ir::print(parsed(text)));
  EXPECT_TRUE(lane_choices(parsed(text), {true, true, true}).empty());
}
TEST(ChooseLanes, OnlyOfVectorizedLoops) {
  const std::string text = loop("64", "unroll", "X[block, i] = exp(X[block, i])");
  EXPECT_EQ(chosen(text), ir::print(parsed(text)));
}

}  // namespace
}  // namespace tilewright::passes
