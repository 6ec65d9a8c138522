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

// What it says about a whole file, of the first mistake that it names.
std::string first_error(const std::string& text, const std::string& standard) {
  char directory[] = "/tmp/tilewright_does_not_compile_XXXXXX";
  if (!mkdtemp(directory)) return "no directory";
  const std::string file = std::string(directory) + "/program.cpp";
  std::ofstream(file) << text;
  const runtime::ProcessResult result = runtime::run_process(
      {runtime::host_compiler().path, standard, "-fsyntax-only", "-I" TILEWRIGHT_SOURCE_DIR "/include", file},
      {"LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=/tmp"}, directory, std::chrono::seconds(60));
  std::filesystem::remove_all(directory);
  const size_t at = result.output.find("error: ");
  return at == std::string::npos ? "" : result.output.substr(at, result.output.find('\n', at) - at);
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

TEST(DoesNotCompile, OlderStandards) {
  for (const char* header : {"language", "executable", "compile"}) {
    const std::string text = fmt::format("#include <tilewright/{}.h>\n", header);
    EXPECT_EQ(first_error(text, "-std=c++20"), "");
    EXPECT_NE(first_error(text, "-std=c++17").find("Tilewright's headers are C++20: compile with -std=c++20"),
              std::string::npos)
        << header;
  }
}

TEST(DoesNotCompile, CallsWithWhatIsNoArray) {
  const auto call = [](const std::string& argument) {
    return first_error(
        "#include <tilewright/compile.h>\n#include <vector>\n#include <string>\n"
        "void call(const tilewright::Executable& kernel, tilewright::NDArray array) { kernel(" +
            argument + "); }\n",
        "-std=c++20");
  };
  EXPECT_EQ(call("array, array.clone(), 1, 2.5f, true, nullptr, 3ull"), "");
  for (const char* argument : {"std::vector<float>(8)", "array, std::string()", "\"text\""})
    EXPECT_NE(call(argument).find("an argument is an NDArray or a number"), std::string::npos) << call(argument);
}

}  // namespace
}  // namespace tilewright
