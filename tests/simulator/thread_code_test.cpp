// Thread code that meets in shared memory: barriers where threads may see each other's elements, none where each has
// its own, and wide accesses for loops over neighbours.
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ir/rewrite.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"
#include "simulator/lowered_programs.h"
#include "tilewright/compile.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

ir::Body lowered(const std::string& text) {
  return passes::lower_to_threads(passes::canonicalize(ir::parse(text, "code.tile")), target::GpuTarget::of(90))
      .threads.launches[0]
      .body;
}

int barriers(const ir::Body& body) {
  int count = 0;
  ir::walk(body, [&](const ir::Stmt& s) { count += s.as<ir::Sync>() ? 1 : 0; });
  return count;
}

// Neighbours that are moved at once, in elements.
std::vector<int64_t> widths(const ir::Body& body) {
  std::vector<int64_t> out;
  ir::walk(body, [&](const ir::Stmt& s) {
    if (const auto* n = s.as<ir::Copy>()) out.push_back(*ir::constant_int(n->to.extent.back()));
  });
  return out;
}

// What the threads of a simulated GPU compute, which finds races, and the interpreter: the same.
void expect_same(const std::string& text) {
  std::mt19937 random(1);
  const ir::TileProgram tiles = ir::parse(text, "code.tile");
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const std::vector<NDArray> want = arrays_of(tiles, random);
  const NDArray got = want[1].clone();
  try {
    compile(program, {.engine = Engine::Interpreter})(want[0], want[1]);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(want[0], got);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
    return;
  }
  const auto bytes = static_cast<size_t>(got.size() * got.dtype().storage_bits() / 8);
  EXPECT_EQ(std::memcmp(want[1].data(), got.data(), bytes), 0);
}

std::string code(const std::string& body) {
  return "program code {\n  param A: float32[64, 128]\n  param B: float32[64, 128]\n  launch code(bx: 1) threads(tx: "
         "256) {\n    shared S: float32[64, 128]\n    local x: float32[4]\n    local y: float32\n" +
         body + "  }\n}\n";
}

// Half of the threads reduce what all have written, then write over what others of them still read.
TEST(ThreadCode, SomeOfTheThreadsWaitForEachOther) {
  for (const char* condition : {"tx < 128", "tx >= 128", "tx // 32 == 2"}) {
    SCOPED_TRACE(condition);
    const std::string text = code(fmt::format(
        "    for i in 0..32 {{\n      S[i * 2 + tx // 128, tx % 128] = A[i * 2 + tx // 128, tx % 128]\n    }}\n"
        "    y = 0.0\n"
        "    if {} {{\n      for i in 0..64 {{\n        y = y + S[i, tx % 32 * 4]\n      }}\n"
        "      S[0, tx % 128] = y\n      y = S[0, 127 - tx % 32 * 4] + y\n    }}\n"
        "    B[tx // 128, tx % 128] = y\n",
        condition));
    expect_same(text);
  }
}

// A branch that not all threads come to alike stays one, and so do atomics, which would happen once in a role.
TEST(ThreadCode, OtherBranchesStay) {
  const auto roles = [](const ir::Body& body) {
    int count = 0;
    ir::walk(body, [&](const ir::Stmt& s) { count += s.as<ir::Role>() ? 1 : 0; });
    return count;
  };
  const std::string exchange = "      S[0, tx % 128] = S[1, tx % 128]\n      y = S[0, 0]\n";
  const std::string store = "    B[tx // 128, tx % 128] = y\n";
  EXPECT_EQ(roles(lowered(code("    y = 0.0\n    if tx < 128 {\n" + exchange + "    }\n" + store))), 1);
  EXPECT_EQ(roles(lowered(code("    y = 0.0\n    if tx < 100 {\n" + exchange + "    }\n" + store))), 0);
  EXPECT_EQ(roles(lowered(code("    y = 0.0\n    if A[tx % 64, 0] < 1.0 {\n      if tx < 128 {\n" + exchange +
                               "      }\n    }\n" + store))),
            0);
  EXPECT_EQ(roles(lowered(code("    y = 0.0\n    if tx < 128 {\n" + exchange +
                               "      atomic add to=B[0, 0] value=1.0\n    }\n" + store))),
            0);
}

TEST(ThreadCode, ElementsOfEachThreadNeedNoBarriers) {
  const auto text = [](const char* write, const char* read) {
    return code(
        fmt::format("    for i in 0..8 {{\n      for j in 0..4 vectorized {{\n"
                    "        S[{}] = A[tx // 32 * 8 + i, tx % 32 * 4 + j]\n      }}\n    }}\n"
                    "    for i in 0..8 {{\n      for j in 0..4 vectorized {{\n"
                    "        B[tx // 32 * 8 + i, tx % 32 * 4 + j] = S[{}]\n      }}\n    }}\n",
                    write, read));
  };
  const char* own = "tx // 32 * 8 + i, tx % 32 * 4 + j";
  EXPECT_EQ(barriers(lowered(text(own, own))), 0);
  expect_same(text(own, own));
  // Digits that reach into each other, other digits than were written, and an element of a neighbour.
  for (const char* other : {"tx // 32 * 7 + i, tx % 32 * 4 + j", "tx % 32 * 2 + i // 4, tx // 32 * 16 + i % 4 * 4 + j",
                            "tx // 32 * 8 + i, (tx % 32 * 4 + j + 4) % 128"}) {
    SCOPED_TRACE(other);
    EXPECT_GT(barriers(lowered(text(own, other))), 0);
    expect_same(text(own, other));
  }
  EXPECT_GT(barriers(lowered(text("tx // 32 * 7 + i, tx % 32 * 4 + j", "tx // 32 * 7 + i, tx % 32 * 4 + j"))), 0);
}

// A loop over a fragment runs where the program says that its elements are: points of one thread may then meet in one
// element on a GPU, as TileLang's programs let them.
TEST(ThreadCode, FragmentsLieAsTheirAnnotationsSay) {
  const auto text = [](const char* layout) {
    return fmt::format(
        "program code {{\n  param A: float32[16, 64]\n  param B: float32[64]\n  launch code(bx: 1) threads(tx: 64) {{\n"
        "    fragment x: float32[16, 64]{}\n    fragment most: float32[64]\n    copy from=A to=x\n"
        "    fill to=most value=-100.0\n    map i in 16, j in 64 {{\n      place: int32 = (i % 8 * 64 + j) // 8\n"
        "      most[place] = max(most[place], x[i, j])\n    }}\n    copy from=most to=B\n  }}\n}}\n",
        layout);
  };
  const ir::TileProgram tiles =
      ir::parse(text(" layout=(i, j) -> ((i * 64 + j) // 8 % 64, i // 8 * 8 + j % 8)"), "code.tile");
  std::mt19937 random(1);
  const std::vector<NDArray> arrays = arrays_of(tiles, random);
  compile(Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles})),
          {.engine = Engine::Simulator, .arch = "sm_90a"})(arrays[0], arrays[1]);
  for (int64_t place = 0; place < 64; ++place) {
    double most = -100;
    for (int64_t i = place / 8; i < 16; i += 8)
      for (int64_t j = place % 8 * 8; j < place % 8 * 8 + 8; ++j) most = std::max(most, arrays[0].get_float({i, j}));
    EXPECT_EQ(arrays[1].get_float({place}), most);
  }
  const auto of = [](const std::string& program) {
    return passes::lower_to_threads(passes::canonicalize(ir::parse(program, "code.tile")), target::GpuTarget::of(90))
        .placements[0]
        .registers.begin()
        ->second.text();
  };
  EXPECT_EQ(of(text(" layout=(i, j) -> ((i * 64 + j) // 8 % 64, i // 8 * 8 + j % 8)")),
            "(16, 64): [2:R(8) 2:W(1) 4:L(8)] x [8:L(1) 8:R(1)]");
  // What no digits of the indices give, or not all threads have a part in, is left to the compiler.
  const std::string own = of(text(" layout=(i, j) -> (i * j % 64, i)"));
  EXPECT_NE(own, "(16, 64): [2:R(8) 2:W(1) 4:L(8)] x [8:L(1) 8:R(1)]");
  EXPECT_EQ(of(text(" layout=(i, j) -> (j % 32, i * 2 + j // 32)")), own);
}

TEST(ThreadCode, LoopsOverNeighboursMoveThemAtOnce) {
  const std::string text = code(
      "    for i in 0..8 {\n      for j in 0..4 vectorized {\n        x[j] = A[tx // 32 * 8 + i, tx % 32 * 4 + j]\n"
      "        S[tx // 32 * 8 + i, tx % 32 * 4 + j] = x[j]\n      }\n    }\n"
      "    for i in 0..8 {\n      for j in 0..4 vectorized {\n        B[63 - tx // 32 * 8 - i, tx % 32 * 4 + j] = "
      "S[63 - tx // 32 * 8 - i, tx % 32 * 4 + j] * 2.0\n      }\n    }\n");
  EXPECT_EQ(widths(lowered(text)), (std::vector<int64_t>{4, 4, 4, 4}));
  expect_same(text);
  // What does not begin at a multiple, or is written twice, goes element by element.
  const std::string shifted = code(
      "    for j in 0..4 vectorized {\n      B[tx // 32, (tx % 32) * 3 + j] = A[tx // 32, (tx % 32) * 3 + j]\n    }\n");
  EXPECT_EQ(widths(lowered(shifted)), (std::vector<int64_t>{}));
  expect_same(
      code("    for j in 0..4 vectorized {\n      S[tx // 32, tx % 32 * 4 + j] = 1.0\n"
           "      S[tx // 32, tx % 32 * 4 + j] = S[tx // 32, tx % 32 * 4 + j] + A[tx // 32, tx % 32 * 4 + j]\n"
           "      B[tx // 32, tx % 32 * 4 + j] = S[tx // 32, tx % 32 * 4 + j]\n    }\n"));
}

}  // namespace
}  // namespace tilewright::simulator
