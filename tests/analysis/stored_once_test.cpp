// Which tensors TMA may store to: no element twice.
#include "analysis/stored_once.h"

#include <gtest/gtest.h>

#include "ir/parse.h"

namespace tilewright::analysis {
namespace {

// Whether O gets each of its elements once where a loop over h stores 64 rows from `row` on.
bool once(const std::string& row, const std::string& column = "0") {
  const ir::TileProgram p = ir::parse(
      "program p {\n  symbol n: int32\n  param I: int32[8]\n  param O: float32[n, n]\n"
      "  launch main(bx: 4) threads(tx: 128) {\n    fragment r: float32[64, 64]\n    for h in 0..8 {\n"
      "      fill to=r value=float32(h)\n      copy from=r to=O[" +
          row + " : 64, " + column + " : 64]\n    }\n  }\n}\n",
      "p.tile");
  return !stored_once(p, p.launches[0]).empty();
}

TEST(StoredOnce, LoopsThatGoOn) {
  EXPECT_TRUE(once("h * 64"));
  EXPECT_TRUE(once("(bx * 8 + h) * 64"));
  EXPECT_TRUE(once("I[bx] + h * 64"));
  EXPECT_TRUE(once("select(bx > 1, h * 64, 448 - h * 64)"));
  EXPECT_TRUE(once("(bx + h * 4) // (n // 64) * 64", "(bx + h * 4) % (n // 64) * 64"));
}

TEST(StoredOnce, LoopsThatComeBack) {
  EXPECT_FALSE(once("bx * 64"));
  EXPECT_FALSE(once("h * 32"));
  EXPECT_FALSE(once("(h - 2) * (h - 2) * 64"));
  EXPECT_FALSE(once("(I[h] + h) * 64"));
  EXPECT_FALSE(once("I[h] * 64"));
  EXPECT_FALSE(once("h // 2 * 64"));
  EXPECT_FALSE(once("h % 4 * 64"));
  EXPECT_FALSE(once("select(h > 3, h, 7 - h) * 64"));
  EXPECT_FALSE(once("max(h, 3) * 64"));
  EXPECT_FALSE(once("h * (n // 8)"));
  EXPECT_FALSE(once("(h % 3 + h // 3) * 64"));
  EXPECT_FALSE(once("(h // 3 * 3 + h % 2) * 64"));
  EXPECT_FALSE(once("h * 64 + h // 2 * -64"));
  EXPECT_FALSE(once("h // 3 * 64", "h % 2 * 64"));
}

}  // namespace
}  // namespace tilewright::analysis
