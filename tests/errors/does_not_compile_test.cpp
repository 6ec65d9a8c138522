// What the C++ compiler must refuse, and say in our words.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/host_compiler.h"
#include "runtime/process.h"

namespace tilewright {
namespace {

class Directory {
 public:
  Directory() { made_ = mkdtemp(path_) != nullptr; }
  ~Directory() { std::filesystem::remove_all(path_); }
  std::string path() const { return made_ ? path_ : "no directory"; }

 private:
  char path_[48] = "/tmp/tilewright_does_not_compile_XXXXXX";
  bool made_;
};

runtime::ProcessResult compile(const Directory& in, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {runtime::host_compiler().path, "-I" TILEWRIGHT_SOURCE_DIR "/include"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const runtime::ProcessResult result = runtime::run_process(
      command, {"LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin", "TMPDIR=/tmp"}, in.path(), std::chrono::seconds(60));
  EXPECT_TRUE(result.started && !result.timed_out);
  return result;
}

// What it says of a file's first mistake, on line 10: the line "error: ..." without that word. "" if the file compiles.
std::string first_error(const std::string& text, const std::string& standard = "-std=c++20",
                        const std::string& include = "") {
  const Directory directory;
  const std::string file = directory.path() + "/program.cpp";
  std::ofstream(file) << text;
  std::vector<std::string> arguments = {standard, "-fsyntax-only", file};
  if (!include.empty()) arguments.insert(arguments.end(), {"-include", include});
  const runtime::ProcessResult result = compile(directory, arguments);
  if (result.status == 0) return "";
  EXPECT_NE(result.output.find("program.cpp:10:"), std::string::npos) << "another line is refused:\n" << result.output;
  const size_t at = result.output.find("error: ") + 7;
  return result.output.substr(at, result.output.find('\n', at) - at);
}

// The headers, compiled once for all statements.
std::string headers() {
  static const Directory directory;
  static const std::string header = [] {
    const std::string file = directory.path() + "/headers.h";
    std::ofstream(file)
        << "#include <tilewright/language.h>\n#include <algorithm>\n#include <cmath>\n#include <iostream>\n";
    EXPECT_EQ(compile(directory, {"-std=c++20", "-x", "c++-header", file, "-o", file + ".gch"}).status, 0);
    return file;
  }();
  return header;
}

// The same of a statement in the body of a kernel.
std::string said_of(const std::string& statement) {
  return first_error(
      "#line 5\nusing namespace tilewright;\n"
      "Program build() {\n"
      "  Tensor A(\"A\", {8, 8}, f32);\n"
      "  return prim_func(\"program\", {A}, [&] {\n"
      "    for (auto [i, j] : Kernel({8, 8}, {.threads = 32})) { Value x = A(i, j), y = A(j, i); auto v = "
      "alloc_var(f32, 0);\n"
      "      " +
          statement +
          "\n"
          "      A(i, j) = x + y + v;\n"
          "    }\n"
          "  });\n"
          "}\n",
      "-std=c++20", headers());
}

constexpr const char* kEvaluate =
    "static assertion failed: an expression has no name of its own: write 'Value x = ...' to evaluate it here";
constexpr const char* kRead =
    "static assertion failed: write 'Value x = A(i, j);' to read the element here, 'Region r = A(...);' to name a box";
constexpr const char* kBranch =
    "static assertion failed: only the running program knows this condition: write 'If(x > 0, [&] { ... });', "
    "'While(...)' or 'if_then_else(x > 0, a, b)'";
constexpr const char* kNumber =
    "static assertion failed: only the running program knows this number: write 'cast(x, f32)' to convert it there";
constexpr const char* kPrint =
    "static assertion failed: only the running program knows this value: write 'print(x)' to print it there";
constexpr const char* kBrackets = "static assertion failed: indices stand in parentheses: write 'A(i, j)'";
constexpr const char* kConstant =
    "static assertion failed: a Value does not change: write 'auto v = alloc_var(f32, x);', then 'v += 1'";
constexpr const char* kStep =
    "static assertion failed: write 'v += 1', of an alloc_var or an element: a Value does not change";
constexpr const char* kOneName =
    "static assertion failed: a loop over several extents gives as many names: write 'for (auto [i, j] : Parallel(m, "
    "n))'";

TEST(DoesNotCompile, WhatIsRightDoes) {
  EXPECT_EQ(
      said_of("Value z = x + y; Region r = A(i, j); v = z; v += x; v /= 2; A(i, j) = A(j, i); If(!(x < y) && x < v, "
              "[] {}); If(i < 3 || true, [] {}); If(false || !i, [] {}); for (auto [k] : Parallel(8)) A(i, k) = k;"),
      "");
}
// With 'std::', or 'using namespace std;', the same functions are meant; those of numbers stay what they are.
TEST(DoesNotCompile, FunctionsOfStd) {
  EXPECT_EQ(
      said_of(
          "A(i, j) = std::max(A(i, j), 0.f) + std::max(x, y) + std::min(1, x) + std::clamp(x, 0, 1) + std::exp(x) + "
          "std::pow(x, 2) + std::abs(A(i, j));"),
      "");
  EXPECT_EQ(said_of("using namespace std; A(i, j) = max(x, y) + max(x, 1) + exp(x) + min(A(i, j), v) + abs(x - y);"),
            "");
  EXPECT_EQ(said_of("static_assert(std::is_same_v<decltype(std::exp(2.f) + std::max(1.f, 2.f)), float>);"
                    "static_assert(std::is_same_v<decltype(std::abs(2) + std::max(1, 2)), int>);"),
            "");
}
TEST(DoesNotCompile, NamesOfWhatHasNone) {
  EXPECT_EQ(said_of("auto z = A(i, j);"), kRead);
  EXPECT_EQ(said_of("auto z = x + y;"), kEvaluate);
}
TEST(DoesNotCompile, Conditions) {
  for (const char* statement :
       {"if (x < y) A(i, j) = 0;", "if (x) A(i, j) = 0;", "while (v) v -= 1;", "Value z = A(i, j) ? x : y;",
        "for (int k = 0; k < i; ++k) A(i, k) = 0;", "bool b(x < y);"})
    EXPECT_EQ(said_of(statement), kBranch) << statement;
}
TEST(DoesNotCompile, NumbersOfCpp) {
  for (const char* statement : {"float z = (float)x;", "auto z = static_cast<int>(A(i, j));"})
    EXPECT_EQ(said_of(statement), kNumber) << statement;
  EXPECT_EQ(said_of("float z = A(i, j);"), "cannot convert 'tilewright::Ref' to 'float' in initialization");
}
TEST(DoesNotCompile, Output) {
  for (const char* statement : {"std::cout << x;", "std::cout << A;", "std::cerr << 1 << x + y;"})
    EXPECT_EQ(said_of(statement), kPrint) << statement;
}
TEST(DoesNotCompile, Brackets) {
  for (const char* statement : {"A[i] = 0;", "A(i, j) = A[i][j];", "A(i)[j] = 0;"})
    EXPECT_EQ(said_of(statement), kBrackets) << statement;
}
TEST(DoesNotCompile, ValuesThatChange) {
  EXPECT_EQ(said_of("x += 1;"), kConstant);
  for (const char* statement : {"++v;", "v++;", "A(i, j)++;", "x++;"})
    EXPECT_EQ(said_of(statement), kStep) << statement;
}
TEST(DoesNotCompile, NamesOfLoops) {
  EXPECT_EQ(said_of("for (auto k : Parallel(8, 8)) A(i, k) = 0;"), kOneName);
  EXPECT_EQ(said_of("for (auto [k, l] : Parallel(8)) A(k, l) = 0;"), "2 names provided for structured binding");
}

TEST(DoesNotCompile, OlderStandards) {
  for (const char* header : {"language", "executable", "compile"}) {
    const std::string text = fmt::format("#line 10\n#include <tilewright/{}.h>\n", header);
    EXPECT_EQ(first_error(text), "");
    EXPECT_EQ(first_error(text, "-std=c++17"),
              "#error \"Tilewright's headers are C++20: compile with -std=c++20 or newer\"")
        << header;
  }
}

TEST(DoesNotCompile, CallsWithWhatIsNoArray) {
  const auto call = [](const std::string& argument) {
    return first_error(
        "#include <tilewright/compile.h>\n#include <vector>\n#include <string>\n"
        "#line 10\nvoid call(const tilewright::Executable& kernel, tilewright::NDArray array) { kernel(" +
        argument + "); }\n");
  };
  EXPECT_EQ(call("array, array.clone(), 1, 2.5f, true, nullptr, 3ull"), "");
  for (const char* argument : {"std::vector<float>(8)", "array, std::string()", "\"text\""})
    EXPECT_EQ(
        call(argument),
        "static assertion failed: an argument is an NDArray or a number: NDArray::borrow(v.data(), {size}, f32) of "
        "a vector's memory")
        << argument;
}

}  // namespace
}  // namespace tilewright
