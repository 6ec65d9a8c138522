// The program of README.md, taken from its text when the build is configured: it compiles, it is right, it is short.
#include "readme_program.h"

#include <gtest/gtest.h>

#include <fstream>

#include "ir/rewrite.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

// Non-blank lines of a function that are not only a comment, from its first line to the line of its closing brace.
int lines_of_function(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  int count = 0;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    inside = inside || (line.find("Program " + name + "(") != std::string::npos && line.find(' ') != 0);
    const size_t first = line.find_first_not_of(' ');
    if (!inside || first == std::string::npos || line.compare(first, 2, "//") == 0) continue;
    ++count;
    if (line == "}") return count;
  }
  ADD_FAILURE() << "no function " << name << " in " << path;
  return 0;
}

// TileLang's presentation has this program as matmul_relu_kernel: 18 lines from @T.prim_func to the last T.copy,
// without comments and blank lines. A quarter more is what braces may cost.
constexpr int kLinesOfTheOriginal = 18;

TEST(Readme, ProgramIsAboutAsShortAsItsOriginal) {
  EXPECT_LE(4 * lines_of_function(TILEWRIGHT_SOURCE_DIR "/README.md", "matmul_relu"), 5 * kLinesOfTheOriginal);
  EXPECT_LE(4 * lines_of_function(TILEWRIGHT_SOURCE_DIR "/examples/gemm.cpp", "matmul_relu"), 5 * kLinesOfTheOriginal);
}

TEST(Readme, ProgramRecordsItsStatements) {
  const Program p = matmul_relu(256, 256, 128, 64, 64, 32);
  const ir::TileProgram& program = p.box().program;
  std::vector<std::string> names;
  ir::walk(program.launches.at(0).body, [&](const ir::Stmt& s) { names.push_back(ir::name_of(s)); });
  EXPECT_EQ(names, (std::vector<std::string>{"fill", "for", "copy", "copy", "gemm", "map", "store", "copy"}));
  EXPECT_EQ(program.params.size(), 3u);
  EXPECT_EQ(program.var(program.launches[0].block[1]).name, "by");
  // Names come from the source where it can be read (a compiler cache may make its path relative to another folder).
  const ir::Buffer& tile = program.buffers[3];
  EXPECT_EQ(tile.name, std::ifstream(program.location(tile.location).file).good() ? "A_shared" : "shared");
}

// Ragged in all three dimensions. Multiples of 1/8 below 2: every sum is exact in float32, and C rounds it once.
TEST(Readme, ProgramIsRight) {
  const int64_t M = 100, N = 90, K = 70;
  const NDArray A = NDArray::zeros({M, K}, f16), B = NDArray::zeros({K, N}, f16);
  std::vector<double> a(static_cast<size_t>(M * K)), b(static_cast<size_t>(K * N));
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i * 7 % 31) / 8 - 2;
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i * 5 % 29) / 8 - 2;
  A.assign_floats(a);
  B.assign_floats(b);
  for (Engine engine : {Engine::Interpreter, Engine::Cpu}) {
    const NDArray C = NDArray::zeros({M, N}, f16), want = NDArray::zeros({M, N}, f16);
    compile(matmul_relu(M, N, K, 32, 64, 16), {.engine = engine})(A, B, C);
    for (int64_t i = 0; i < M; ++i)
      for (int64_t j = 0; j < N; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < K; ++k) sum += a[static_cast<size_t>(i * K + k)] * b[static_cast<size_t>(k * N + j)];
        want.set_float({i, j}, std::max(sum, 0.0));
      }
    EXPECT_EQ(C.to_floats(), want.to_floats());
  }
}

}  // namespace
}  // namespace tilewright
