#include "passes/merge_turns.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "passes/canonicalize.h"

namespace tilewright {
namespace {

// The maps and loops of a body after canonicalization, by their first lines.
std::vector<std::string> made_of(const std::string& body) {
  const std::string text =
      "program p {\n  param A: float32[8, 64]\n  param B: float32[8, 64]\n  launch main(bx: 1) threads(tx: 64) {\n"
      "    fragment f: float32[8, 64]\n    fragment g: float32[8, 64]\n    shared s: float32[8, 64]\n"
      "    local l: float32[8]\n" +
      body + "  }\n}\n";
  const std::string made = ir::print(passes::canonicalize(ir::parse(text, "p.tile")));
  std::vector<std::string> out;
  for (size_t at = 0, end = 0; at < made.size(); at = end + 1) {
    end = std::min(made.find('\n', at), made.size());
    const std::string line = made.substr(at, end - at);
    const size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos && (line.compare(first, 4, "map ") == 0 || line.compare(first, 4, "for ") == 0))
      out.push_back(line.substr(first));
  }
  return out;
}
std::vector<std::string> of_rows(const std::string& statement) {
  return made_of("    for i in 0..8 {\n      map j in 64 {\n        " + statement + "\n      }\n    }\n");
}

using Lines = std::vector<std::string>;

TEST(MergeTurns, RowsOfAFragmentAreOneMap) {
  EXPECT_EQ(of_rows("f[i, j] = A[i, j]"), Lines{"map i in 8, j in 64 {"});
  EXPECT_EQ(of_rows("s[i, j] = f[i, j] + s[i, j]"), Lines{"map i in 8, j in 64 {"});
  EXPECT_EQ(of_rows("f[i, j] = g[i, j] * g[0, j]"), Lines{"map i in 8, j in 64 {"});
  EXPECT_EQ(made_of("    for i in 2 : 6 {\n      map j in 64 {\n        f[i, j] = A[i, j]\n      }\n    }\n"),
            Lines{"map i in 6, j in 64 {"});
  EXPECT_EQ(made_of("    for r in 0..2 {\n      for i in 0..4 {\n        map j in 64 {\n          f[i, j] = g[i, j] + "
                    "A[r, j]\n        }\n      }\n    }\n"),
            (Lines{"for r in 0..2 {", "map i in 4, j in 64 {"}));
}

TEST(MergeTurns, OtherTurnsComeOneAfterTheOther) {
  const Lines loop = {"for i in 0..8 {", "map j in 64 {"};
  EXPECT_EQ(of_rows("f[i, j] = f[7 - i, j]"), loop);        // rows of another turn
  EXPECT_EQ(of_rows("f[0, j] = f[0, j] + A[i, j]"), loop);  // a sum over the turns
  EXPECT_EQ(of_rows("s[(i + 1) % 8, j] = f[i, j]"), loop);
  EXPECT_EQ(of_rows("B[i, j] = f[i, j]"), loop);  // global memory may be another's, too
  EXPECT_EQ(of_rows("f[i, j] = l[i]"), loop);
  EXPECT_EQ(of_rows("s[i, j] = A[i, j]"), loop);  // nothing in registers
  EXPECT_EQ(of_rows("f[i, j] = float32(tx)"), loop);
}

}  // namespace
}  // namespace tilewright
