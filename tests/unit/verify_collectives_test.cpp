#include <gtest/gtest.h>

#include "analysis/collectives.h"
#include "ir/parse.h"

namespace tilewright::analysis {
namespace {

std::string findings(const std::string& body) {
  const ir::TileProgram p = ir::parse(
      "program p {\n  param A: float32[64]\n  param n: int32\n  launch main(bx: 2) threads(tx: 128) {\n"
      "    shared S: float32[64]\n    local v: int32\n" +
          body + "  }\n}\n",
      "p.tile");
  std::string text;
  for (const Diagnostic& d : check_collectives(p)) text += d.to_string() + "\n";
  return text;
}

TEST(Collectives, UniformControlIsFine) {
  EXPECT_EQ(findings("if n > 4 {\ncopy from=A to=S\n}\nfor k in 0..n {\nfill to=S value=0.0\nsync block\n}\n"), "");
  EXPECT_EQ(findings("if bx == 0 {\nfill to=S value=0.0\n}\nif S[0] > 0.0 {\nsync block\n}\n"), "");
  EXPECT_EQ(findings("map i in 64 {\nif S[i] > 0.0 {\nS[i] = 1.0\n}\n}\n"), "");
}

TEST(Collectives, ABranchOnThreadsIsNot) {
  EXPECT_EQ(findings("if tx < 5 {\nS[tx] = 0.0\nfill to=S value=0.0\n}\n"),
            "error TW3093 verify: fill is done by all threads together, but not all of them may come here\n"
            "  --> p.tile:9:1\n"
            "note: not all threads take the same way here, by if\n"
            "  --> p.tile:7:1\n"
            "help: move it out of the branch, or branch on whole warps, as in if tx < 64\n");
}

TEST(Collectives, SomeThreadsHaveLeft) {
  EXPECT_EQ(findings("if tx == 3 {\nreturn\n}\nsync block\n"),
            "error TW3093 verify: sync is done by all threads together, but not all of them may come here\n"
            "  --> p.tile:10:1\n"
            "note: some threads may have left before, by break, continue or return\n"
            "help: move it out of the branch, or branch on whole warps, as in if tx < 64\n");
}

TEST(Collectives, LoopsOfDifferentLengthsAndVotes) {
  EXPECT_NE(findings("for k in 0..tx {\ncopy from=A to=S\n}\n").find("by for"), std::string::npos);
  EXPECT_NE(
      findings("v = tx\nwhile v > 0 {\nx: bool = vote block_any value=v > 1\nv = v - 1\n}\n").find("vote is done"),
      std::string::npos);
}

TEST(Collectives, WarpsArriveAsAWhole) {
  const std::string arrive = "barrier b: uint64[1] arrive=[4]\narrive barrier=b[0] by=warp\n";
  EXPECT_EQ(findings("if tx // 32 == 2 {\n" + arrive + "}\n"), "");
  EXPECT_EQ(findings("if tx < 5 {\n" + arrive + "}\n"),
            "error TW3093 verify: arrive is done by all threads of a warp together, but not all of them may come here\n"
            "  --> p.tile:9:1\n"
            "note: not all threads take the same way here, by if\n"
            "  --> p.tile:7:1\n"
            "help: move it out of the branch, or branch on whole warps, as in if tx < 64\n");
}

TEST(Collectives, RolesAreSetsOfTheirOwn) {
  EXPECT_EQ(
      findings(
          "role 0..64 {\nfill to=S value=0.0\n}\nrole 64..128 {\ncopy from=S to=A\nsync named barrier=1 count=64\n}\n"),
      "");
  EXPECT_EQ(findings("if tx < 64 {\nsync named barrier=1 count=64\nsync warp\n}\n"), "");
}

}  // namespace
}  // namespace tilewright::analysis
