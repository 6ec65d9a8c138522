// Loop programs before and after fold_lanes() and scan_rows(): text in, text out.
#include "passes/loops/fold_lanes.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "passes/loops/scan_rows.h"

namespace tilewright::passes {
namespace {

std::string around(const std::string& buffers, const std::string& body) {
  return "loop program p {\n  param X: float32[64, 64]\n  param Y: float32[64, 64]\n  launch p(bx: 4) threads(tx: 32) "
         "{\n" +
         buffers + "    for block: int64 in 0..4 grid {\n" + body + "    }\n  }\n}\n";
}

// ---- fold_lanes

const std::string kLanes = "    local t: float32[8]\n";
const std::string kStart =
    "      for i: int64 in 0..8 vectorized {\n        t[i] = X[block, i]\n      }\n";  // all lanes have a value
const std::string kEnd = "      Y[block, int64(0)] = t[int64(0)]\n";

std::string level(const std::string& var, int64_t half, const std::string& value) {
  return "      for " + var + ": int64 in 0.." + std::to_string(half) + " vectorized {\n        t[" + var +
         "] = " + value + "\n      }\n";
}
std::string sums(const std::string& op) {
  return level("a", 4, "t[a] " + op + " t[a + 4]") + level("b", 2, "t[b] " + op + " t[b + 2]") +
         level("c", 1, "t[c] " + op + " t[c + 1]");
}
std::string folded(const std::string& body) {
  const ir::LoopProgram out = fold_lanes(ir::parse_loop_program(around(kLanes, body), "p.tile"));
  ir::check_valid(out, "fold_lanes");
  return ir::print(out);
}
void expect_not_folded(const std::string& body) {
  EXPECT_EQ(folded(body), ir::print(ir::parse_loop_program(around(kLanes, body), "p.tile")));
}

TEST(FoldLanes, TheTreeOfASumIsOneStatement) {
  EXPECT_EQ(folded(kStart + sums("+") + kEnd),
            around(kLanes, kStart + "      fold lanes=t half=4 value=t[int64(0)] + t[int64(4)]\n" + kEnd));
}
TEST(FoldLanes, AlsoUnderConditionsAndInLoops) {
  const std::string in = "      if block < 2 {\n" + kStart + sums("+") + kEnd + "      }\n";
  EXPECT_NE(folded(in).find("fold lanes=t half=4"), std::string::npos) << folded(in);
}
TEST(FoldLanes, WhatVectorsHaveNoOperatorForStays) { expect_not_folded(kStart + sums("-") + kEnd); }
TEST(FoldLanes, ATreeThatLacksALevelStays) {
  expect_not_folded(kStart + level("a", 4, "t[a] + t[a + 4]") + level("c", 1, "t[c] + t[c + 1]") + kEnd);
}
TEST(FoldLanes, LevelsThatJoinInOtherWaysStay) {
  expect_not_folded(kStart + level("a", 4, "t[a] + t[a + 4]") + level("b", 2, "t[b + 2] + t[b + 2]") +
                    level("c", 1, "t[c] + t[c + 1]") + kEnd);
}
TEST(FoldLanes, LanesThatAreReadAfterwardsStay) {
  expect_not_folded(kStart + sums("+") + "      Y[block, int64(0)] = t[int64(1)]\n");
}

// ---- scan_rows

const std::string kTile = "    shared s: float32[16, 64]\n    local total: float32[16]\n";

std::string rows(const std::string& total, const std::string& to) {
  return "      for k: int64 in 0..64 {\n        for i: int64 in 0..16 unroll {\n          total[i] = " + total +
         "\n          " + to + " = total[i]\n        }\n      }\n";
}
std::string scanned(const std::string& body, const target::CpuFeatures& features) {
  const ir::LoopProgram out = scan_rows(ir::parse_loop_program(around(kTile, body), "p.tile"), features);
  ir::check_valid(out, "scan_rows");
  return ir::print(out);
}
void expect_not_scanned(const std::string& body, const target::CpuFeatures& features) {
  EXPECT_EQ(scanned(body, features), ir::print(ir::parse_loop_program(around(kTile, body), "p.tile")));
}
constexpr target::CpuFeatures kPlain = {}, kWide = {true, true, true, true};

TEST(ScanRows, AsManyRowsAsAVectorTakesAreOneStatement) {
  EXPECT_EQ(scanned(rows("total[i] + s[i, k]", "s[i, k]"), kWide),
            around(kTile,
                   "      row_scan from=(first=s[int64(0), int64(0)], along=1) to=(first=s[int64(0), int64(0)], "
                   "along=1) total=total rows=16 count=int64(64) value=total[int64(0)] + s[int64(0), int64(0)]\n"));
}
TEST(ScanRows, MoreThanAVectorTakesStay) { expect_not_scanned(rows("total[i] + s[i, k]", "s[i, k]"), kPlain); }
TEST(ScanRows, WhatVectorsHaveNoOperatorForStays) {
  expect_not_scanned(rows("exp(total[i] + s[i, k])", "s[i, k]"), kWide);
}
TEST(ScanRows, ElementsThatDoNotFollowOneAnotherStay) {
  expect_not_scanned(rows("total[i] + s[k, i]", "s[k, i]"), kWide);
  expect_not_scanned(rows("total[i] + s[i, k]", "s[i, 63 - k]"), kWide);
}

}  // namespace
}  // namespace tilewright::passes
