#include "passes/meeting_points.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "passes/canonicalize.h"

namespace tilewright {
namespace {

// The maps and loops of a body after canonicalization, by their first lines.
std::string made_of(const std::string& body) {
  const std::string text =
      "program p {\n  param A: float32[8, 64]\n  param B: float32[64]\n  param I: int32[8]\n"
      "  launch main(bx: 1) threads(tx: 64) {\n    shared s: float32[8]\n    shared t: float32[64]\n"
      "    local l: float32[1]\n    fragment r: float32[8] reducer=sum\n" +
      body + "  }\n}\n";
  const std::string made = ir::print(passes::canonicalize(ir::parse(text, "p.tile")));
  std::string out;
  for (size_t at = 0, end = 0; at < made.size(); at = end + 1) {
    end = std::min(made.find('\n', at), made.size());
    const std::string line = made.substr(at, end - at);
    const size_t first = line.find_first_not_of(' ');
    if (first != std::string::npos && (line.compare(first, 4, "map ") == 0 || line.compare(first, 4, "for ") == 0))
      out += line.substr(first) + " ";
  }
  return out;
}
std::string of_points(const std::string& statements) {
  return made_of("    map i in 8, j in 64 {\n" + statements + "    }\n");
}

const std::string kAtOnce = "map i in 8, j in 64 { ";

TEST(MeetingPoints, TakeTurnsWhereTheyChangeOneElement) {
  EXPECT_EQ(of_points("s[i] = s[i] + A[i, j]\n"), "map i in 8 { for j in 0..64 { ");
  EXPECT_EQ(of_points("t[j] = max(t[j], A[i, j])\n"), "map j in 64 { for i in 0..8 { ");
  EXPECT_EQ(of_points("s[0] = s[0] + A[i, j]\n"), "map point in 1 { for i in 0..8 { for j in 0..64 { ");
  EXPECT_EQ(of_points("if A[i, j] > s[i] {\n s[i] = A[i, j]\n }\n"), "map i in 8 { for j in 0..64 { ");
  // By another name, and after other statements.
  EXPECT_EQ(of_points("n: int32 = 7 - i\n old: float32 = s[n]\n A[i, j] = old\n s[n] = old + 1.0\n"),
            "map i in 8 { for j in 0..64 { ");
  EXPECT_EQ(made_of("    map i in 8 {\n map j in 64 {\n s[i] = s[i] + A[i, j]\n }\n }\n"),
            "map i in 8 { for j in 0..64 { ");
}

TEST(MeetingPoints, OthersAreInNoOrder) {
  EXPECT_EQ(of_points("A[i, j] = A[i, j] + s[i]\n"), kAtOnce);
  EXPECT_EQ(of_points("l[0] = l[0] + A[i, j]\n"), kAtOnce);                          // each thread's own
  EXPECT_EQ(of_points("atomic add to=r[i] value=A[i, j]\n"), kAtOnce);               // counted once each
  EXPECT_EQ(of_points("if i < 3 and j == 0 {\n s[i] = s[i] + 1.0\n }\n"), kAtOnce);  // one point of a row
  EXPECT_EQ(of_points("s[I[i] + j * 0] = 1.0\n"), kAtOnce);                          // reads nothing
  EXPECT_EQ(made_of("    map i in 8, j in 1 {\n s[i] = s[i] + A[i, j]\n    }\n"), "map i in 8 { ");
}

// Compared and exchanged with a partner, as sorting networks do it: no two points have one.
TEST(MeetingPoints, PartnersAreInNoOrder) {
  const auto sorted = [](const std::string& partner) {
    return made_of(
        "    for k in 0..6 {\n map j in 64 {\n p: int32 = " + partner +
        "\n if j < p and t[p] < t[j] {\n x: float32 = t[j]\n t[j] = t[p]\n t[p] = x\n }\n }\n sync block\n }\n");
  };
  EXPECT_EQ(sorted("j ^ (1 << k)"), "for k in 0..6 { map j in 64 { ");
  EXPECT_EQ(sorted("(1 << 5 - k) ^ j"), "for k in 0..6 { map j in 64 { ");
  EXPECT_EQ(sorted("(j // 2) ^ (1 << k)"), "for k in 0..6 { map point in 1 { for j in 0..64 { ");
  EXPECT_EQ(sorted("(j ^ k) & 7"), "for k in 0..6 { map point in 1 { for j in 0..64 { ");
}

}  // namespace
}  // namespace tilewright
