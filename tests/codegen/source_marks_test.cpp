// Lines of kernels' texts and the lines of the program that they come from.
#include "codegen/source_marks.h"

#include <gtest/gtest.h>

#include "codegen/cuda.h"
#include "driver/cpu_engine.h"
#include "driver/cuda_engine.h"
#include "ir/parse.h"
#include "passes/pipeline.h"

namespace tilewright::codegen {
namespace {

std::vector<int> lines_of(std::string_view text, const std::vector<SourceLocation>& marks) {
  std::vector<int> out;
  for (const SourceLocation& at : places_of_lines(text, marks)) out.push_back(at.line);
  return out;
}

TEST(SourceMarks, OfALineStandsAboveIt) {
  const SourceLocation a{"x/a.py", 3, 1}, b{"y/a.py", 3, 5}, c{"x/a.py", 7, 1};
  EXPECT_EQ(source_mark(a), "// a.py:3");
  const std::string text =
      "void f() {\n  int k;\n  // a.py:3\n  k = 1;\n    // a.py:7\n    k = 2;\n}\nvoid g() {\n  // a.py:3\n  h();\n}\n";
  EXPECT_EQ(lines_of(text, {a, c, b}), (std::vector<int>{0, 0, 3, 3, 7, 7, 0, 0, 3, 3, 0}));
  // Files of one name in two folders are told apart by the order.
  EXPECT_EQ(places_of_lines(text, std::vector{a, c, b})[8].file, "y/a.py");
  // A text that was dropped has left a mark; a comment that is no mark means nothing.
  EXPECT_EQ(lines_of("{\n  // a.py:7\n  x;\n  // b.py:1\n  y;\n", {a, c}), (std::vector<int>{0, 7, 7, 7, 7}));
  const SourceLocation odd{"a\nb\\.py", 1, 1};
  EXPECT_EQ(source_mark(odd), "// a_b_.py:1");
}

constexpr const char* kProgram =
    "program p {\n  param A: float32[64]\n  param B: float32[64]\n  launch p(bx: 1) threads(tx: 64) {\n    shared s: "
    "float32[64]\n"
    "    copy from=A to=s\n    map i in 64 {\n      B[i] = s[i] * 2.0\n    }\n  }\n}\n";

// Every mark that a text is said to have is one of its lines, and each statement has one.
void expect_marks(const std::string& text, const std::vector<SourceLocation>& marks) {
  std::set<int> lines;
  const std::vector<SourceLocation> places = places_of_lines(text, marks);
  for (const SourceLocation& at : places) lines.insert(at.line);
  EXPECT_TRUE(lines.contains(6) && lines.contains(8)) << text;
  EXPECT_EQ(static_cast<int64_t>(places.size()), std::count(text.begin(), text.end(), '\n'));
  EXPECT_EQ(places.back().line, 0);
}

TEST(SourceMarks, OfKernels) {
  const ir::TileProgram tiles =
      passes::run_passes(ir::parse(kProgram, "p.tile"), passes::all_passes(), [](auto&&...) {});
  Dump dump("p");
  const CpuKernel cpu = write_cpu(tiles, {}, dump);
  expect_marks(cpu.text, cpu.marks);
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const CudaText cuda = write_cuda(tiles, arch, dump);
    expect_marks(cuda.kernel.text, cuda.marks);
  }
}

}  // namespace
}  // namespace tilewright::codegen
