// What the C++ compiler must refuse, and say in our words.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/host_compiler.h"
#include "runtime/process.h"

namespace tilewright {
namespace {

// What the compiler says about a statement in the body of a kernel; empty if it compiles.
std::string compiler_says(const std::string& statement) {
  char directory[] = "/tmp/tilewright_does_not_compile_XXXXXX";
  if (!mkdtemp(directory)) return "no directory";
  const std::string file = std::string(directory) + "/program.cpp";
  std::ofstream(file) << "#include <tilewright/language.h>\n"
                         "using namespace tilewright;\n"
                         "Program build() {\n"
                         "  Tensor A(\"A\", {8, 8}, f32);\n"
                         "  return prim_func(\"program\", {A}, [&] {\n"
                         "    for (auto [i, j] : Kernel({8, 8}, {.threads = 32})) {\n"
                         "      Value x = A(i, j), y = A(j, i);\n"
                         "      auto v = alloc_var(f32, 0);\n"
                         "      " +
                             statement +
                             "\n"
                             "      A(i, j) = x + y + v;\n"
                             "    }\n"
                             "  });\n"
                             "}\n";
  const runtime::ProcessResult result = runtime::run_process(
      {runtime::host_compiler().path, "-std=c++20", "-fsyntax-only", "-I" TILEWRIGHT_SOURCE_DIR "/include", file},
      {"LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=/tmp"}, directory, std::chrono::seconds(60));
  std::filesystem::remove_all(directory);
  EXPECT_TRUE(result.started && !result.timed_out);
  if (result.status == 0) return "";
  EXPECT_NE(result.output.find("program.cpp:9:"), std::string::npos) << "another line is refused:\n" << result.output;
  return result.output;
}

void expect_refused(const std::string& statement, const std::string& words) {
  const std::string said = compiler_says(statement);
  EXPECT_NE(said.find(words), std::string::npos) << statement << "\n" << (said.empty() ? "compiles" : said);
}

constexpr const char* kEvaluate = "write 'Value x = ...' to evaluate it here";
constexpr const char* kRead = "write 'Value x = A(i, j);' to read the element here";
// No words of ours: a conversion that explains itself would make !x, x && y and x || y ambiguous.
constexpr const char* kBranch = "to 'bool'";

TEST(DoesNotCompile, WhatIsRightDoes) {
  EXPECT_EQ(compiler_says(
                "Value z = x + y; Region r = A(i, j); v = z; v += x; A(i, j) = A(j, i); If(!(x < y) && x < v, [] {});"),
            "");
}
TEST(DoesNotCompile, ElementWithoutAName) { expect_refused("auto z = A(i, j);", kRead); }
TEST(DoesNotCompile, ExpressionWithoutAName) { expect_refused("auto z = x + y;", kEvaluate); }
TEST(DoesNotCompile, BranchOnAnExpression) { expect_refused("if (x < y) A(i, j) = 0;", kBranch); }
TEST(DoesNotCompile, BranchOnAValue) { expect_refused("if (x) A(i, j) = 0;", kBranch); }
TEST(DoesNotCompile, LoopOnAVariable) { expect_refused("while (v) v -= 1;", kBranch); }
TEST(DoesNotCompile, ChoiceByAnElement) { expect_refused("Value z = A(i, j) ? x : y;", kBranch); }

}  // namespace
}  // namespace tilewright
