// What each line of a printed program says: the same as print() writes behind it where places are asked for.
#include "ir/print_lines.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/print.h"
#include "unit/text_samples.h"

namespace tilewright::ir {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

template <class Program>
void check(const Program& program) {
  const PrintedLines printed = print_lines(program);
  EXPECT_EQ(printed.text, print(program));
  const std::vector<std::string> plain = lines_of(printed.text), placed = lines_of(print(program, {.locations = true}));
  ASSERT_EQ(printed.places.size(), plain.size());
  ASSERT_EQ(placed.size(), plain.size());
  size_t statements = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    const PrintedPlace& place = printed.places[i];
    const SourceLocation& at = program.location(place.location);
    const std::string said = at.known() ? fmt::format("\":{}:{}", at.line, at.column) : "";
    const bool tells = placed[i].find(" @ \"") != std::string::npos;
    EXPECT_EQ(tells, at.known()) << placed[i];
    EXPECT_NE(placed[i].find(said), std::string::npos) << placed[i];
    statements += place.is_statement;
  }
  EXPECT_GT(statements, 0u);
}

TEST(PrintLines, AgreeWithThePlacesThatAreWritten) {
  check(parse(kMatmulText, "matmul.tile"));
  check(parse(kEverythingText, "everything.tile"));
  check(
      parse("program p {\n  param A: float32[64]\n  launch p(bx: 1) threads(tx: 64) {\n    shared s: float32[64]\n"
            "    copy from=A to=s\n    for i in 0..4 {\n      if i == 2 {\n        copy from=s to=A\n      } else if i "
            "== 3 {\n"
            "        fill to=s value=1.0\n      }\n    }\n    map i in 64 {\n      x: float32 = s[i]\n      A[i] = x\n "
            "   }\n  }\n}\n",
            "p.tile"));
  check(parse_thread_program(
      "thread program t {\n  param A: float32[64]\n  launch t(bx: 1) threads(tx: 64) {\n    A[tx] = 1.0\n  }\n}\n",
      "t.tile"));
}

TEST(PrintLines, NeighboursHaveTheirOwn) {
  const TileProgram program = parse(
      "program p {\n  param A: float32[64]\n  launch p(bx: 1) threads(tx: 64) {\n    shared s: float32[64]\n    copy "
      "from=A to=s\n"
      "    copy from=s to=A\n  }\n}\n",
      "p.tile");
  const PrintedLines printed = print_lines(program);
  std::vector<int> lines;
  for (const PrintedPlace& p : printed.places) lines.push_back(program.location(p.location).line);
  EXPECT_EQ(lines, (std::vector<int>{0, 2, 3, 4, 5, 6, 0, 0}));
  EXPECT_FALSE(printed.places[3].is_statement);
  EXPECT_TRUE(printed.places[4].is_statement);
}

}  // namespace
}  // namespace tilewright::ir
