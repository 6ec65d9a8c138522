// Which tensors TMA may store to without waiting: no element twice.
#include "analysis/stored_once.h"

#include <gtest/gtest.h>

#include "ir/parse.h"

namespace tilewright::analysis {
namespace {

enum class Stores { Once, Again, Other };

// How O is stored to by a launch of these statements.
Stores stores(const std::string& body) {
  const ir::TileProgram p = ir::parse(
      "program p {\n  symbol n: int32\n  param I: int32[8]\n  param J: int32[8]\n  param O: float32[n, n]\n"
      "  launch main(bx: 4) threads(tx: 128) {\n    local row: int32\n    shared s: int32[8]\n"
      "    fragment r: float32[64, 64]\n" +
          body + "  }\n}\n",
      "p.tile");
  const StoredTensors found = stored_tensors(p, p.launches[0]);
  return found.once.empty() ? found.again.empty() ? Stores::Other : Stores::Again : Stores::Once;
}

std::string copy(const std::string& row, const std::string& column = "0") {
  return "    copy from=r to=O[" + row + " : 64, " + column + " : 64]\n";
}

// Whether O gets each of its elements once where a loop over h stores 64 rows from `row` on.
bool once(const std::string& row, const std::string& column = "0", const std::string& before = "",
          const std::string& after = "") {
  return stores("    row = 0\n    for h in 0..8 {\n" + before + copy(row, column) + after + "    }\n") == Stores::Once;
}
// The same of a loop over h in one over g.
bool nested(const std::string& row, const std::string& column = "0", const std::string& inner = "h in 0..4",
            const std::string& outer = "g in 0..4") {
  return stores("    for " + outer + " {\n    for " + inner + " {\n" + copy(row, column) + "    }\n    }\n") ==
         Stores::Once;
}

TEST(StoredOnce, LoopsThatGoOn) {
  EXPECT_TRUE(once("h * 64"));
  EXPECT_TRUE(once("(bx * 8 + h) * 64"));
  EXPECT_TRUE(once("I[bx] + h * 64"));
  EXPECT_TRUE(once("select(bx > 1, h * 64, 448 - h * 64)"));
  EXPECT_TRUE(once("(bx + h * 4) // (n // 64) * 64", "(bx + h * 4) % (n // 64) * 64"));
  EXPECT_TRUE(once("(bx + h * 4) // 8 * 64", "((bx + h * 4) & 7) * 64"));
  EXPECT_TRUE(once("(h >> 1) * 128 + h % 2 * 64"));
  EXPECT_TRUE(once("h // 6 * 64", "h % 6 // 4 * 256 + h % 6 % 4 * 64"));
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

TEST(StoredOnce, WhatChangesFromTurnToTurn) {
  EXPECT_TRUE(once("row + h * 64"));
  EXPECT_FALSE(once("row + h * 64", "0", "", "    row = row - 64\n"));
  EXPECT_TRUE(once("q + h * 64", "0", "    q: int32 = I[bx]\n"));
  EXPECT_TRUE(once("q", "0", "    q: int32 = (bx + h) * 64\n"));
  EXPECT_FALSE(once("q + h * 64", "0", "    q: int32 = h * -64\n"));
  EXPECT_FALSE(once("q + h * 64", "0", "    q: int32 = row\n", "    row = row - 64\n"));
  EXPECT_FALSE(once("q * 64 + h * 64", "0", "    q: int32 = atomic add to=J[0] value=-1\n"));
  EXPECT_FALSE(once("J[bx] + h * 64", "0", "", "    J[bx] = J[bx] - 64\n"));
  EXPECT_FALSE(once("select(row > 0, h * 64, 448 - h * 64)", "0", "", "    row = 1 - row\n"));
  EXPECT_TRUE(once("s[0] + h * 64"));
  EXPECT_FALSE(once("s[0] + h * 64", "0", "", "    s[0] = s[0] - 64\n"));
}

TEST(StoredOnce, LoopsInLoops) {
  EXPECT_TRUE(nested("g * 64", "h * 64"));
  EXPECT_TRUE(nested("g * 256 + h * 64"));
  EXPECT_TRUE(nested("h * 256 + g * 64"));
  EXPECT_TRUE(nested("g * 256 + 192 - h * 64"));
  EXPECT_TRUE(nested("(g + h) * 64", "h * 64"));
  EXPECT_FALSE(nested("(g + h) * 64"));
  EXPECT_FALSE(nested("g * 192 + h * 64"));
  EXPECT_FALSE(nested("g * 256 - h * 64", "0", "h in g * 4 : 4"));
  EXPECT_FALSE(nested("g * 256 + h * 64", "0", "h in 0..n"));
  EXPECT_FALSE(nested("select(g > 1, h * 64, 192 - h * 64)"));
  EXPECT_TRUE(nested("g * 64 + h * 64", "0", "h in 0..1"));
  EXPECT_TRUE(nested("h * 64", "0", "h in 0..4", "g in 0..1"));
}

// Two turns of the loop divide the same number, or the quotients' tiles lie over each other.
TEST(StoredOnce, Divisions) {
  EXPECT_FALSE(once("h // 2 // 2 * 64", "h // 2 % 2 * 64"));
  EXPECT_FALSE(once("h // 4 * 32", "h % 4 * 32"));
  EXPECT_FALSE(once("h // 4 * (h % 4) * 64", "h % 4 * (h // 4) * 64"));
  EXPECT_FALSE(once("(bx + h * 4) // 5 * 64", "((bx + h * 4) & 5) * 64"));
  EXPECT_FALSE(once("h // row * 64", "h % row * 64", "    row = h + 1\n"));
  EXPECT_FALSE(once("truncdiv(h - 4, 3) * 64", "(h - 4) % 3 * 64"));
}

TEST(StoredOnce, TwoCopies) {
  const auto both = [](const std::string& first, const std::string& second, const std::string& between = "") {
    return stores("    row = 0\n    for h in 0..4 {\n" + copy(first) + between + copy(second) + "    }\n");
  };
  EXPECT_EQ(both("h * 128", "h * 128 + 64"), Stores::Once);
  EXPECT_EQ(both("h * 128 + row", "h * 128 + row + 64"), Stores::Once);
  EXPECT_EQ(both("h * 128 + row", "h * 128 + row + 64", "    row = row - 64\n"), Stores::Again);
  EXPECT_EQ(both("h * 64", "h * 64 + 64"), Stores::Again);
  EXPECT_EQ(both("h * 128", "h * 128 + 32"), Stores::Again);
  EXPECT_EQ(stores(copy("0") + copy("64")), Stores::Once);
  EXPECT_EQ(stores("    row = 0\n" + copy("row") + "    row = -64\n" + copy("row + 64")), Stores::Again);
  EXPECT_EQ(stores("    row = 0\n    while row < 256 {\n" + copy("row") + "    row = row + 64\n    }\n"),
            Stores::Again);
  EXPECT_EQ(stores(copy("0") + "    row = int32(O[0, 0])\n"), Stores::Other);
  EXPECT_EQ(stores(copy("0") + "    O[tx, 64] = 1.0\n"), Stores::Other);
}

}  // namespace
}  // namespace tilewright::analysis
