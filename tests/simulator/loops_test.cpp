// Loops of every kind on a GPU: what is open where threads leave a loop or go on with its next turn is ordered, and
// what a pipelined loop stages is found under its new name. The simulator against the interpreter, on both kinds of
// GPUs.
#include <gtest/gtest.h>

#include "driver/arguments.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "tilewright/compile.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

std::vector<NDArray> clones(const std::vector<NDArray>& arrays) {
  std::vector<NDArray> out;
  for (const NDArray& a : arrays) out.push_back(a.clone());
  return out;
}

// Whole numbers are the same bits; of floats one in 2^10 may be lost in another order.
void expect_right(const std::string& text, const NamedValues& values = {}) {
  SCOPED_TRACE(text);
  const ir::TileProgram tiles = ir::parse(text, "loops.tile");
  ir::check_valid(tiles);
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const std::vector<NDArray> inputs = random_arguments(tiles, values, 7);
  const auto run = [&](const CompileOptions& options) {
    std::vector<NDArray> arrays = clones(inputs);
    std::vector<Argument> list;
    size_t next = 0;
    for (const ir::Param& p : tiles.params) {
      if (p.is_tensor())
        list.emplace_back(arrays[next++]);
      else
        list.emplace_back(values.at(tiles.var(p.var).name));
    }
    compile(program, options).call(list);
    return arrays;
  };
  const std::vector<NDArray> want = run({.engine = Engine::Interpreter});
  for (const char* arch : {"sm_80", "sm_90a"}) {
    SCOPED_TRACE(arch);
    try {
      const std::vector<NDArray> got = run({.engine = Engine::Simulator, .arch = arch});
      for (size_t i = 0; i < want.size(); ++i) {
        const std::vector<double> x = want[i].to_floats(), y = got[i].to_floats();
        const double least = want[i].dtype().is_float() ? 0x1p-10 : 0;
        for (size_t j = 0; j < x.size(); ++j)
          ASSERT_LE(std::abs(x[j] - y[j]), least * std::max(1.0, std::abs(x[j]))) << "array " << i << ", element " << j;
      }
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

// A launch of 64 threads over shared tiles s and t, with B to write and n to ask.
std::string with_tiles(const std::string& body) {
  return "program p {\n  param A: int32[64, 16]\n  param B: int32[16, 16]\n  param n: int32\n"
         "  launch l(bx: 1) threads(tx: 64) {\n    shared t: int32[16, 16]\n    shared s: int32[16, 16]\n"
         "    fill to=t value=1\n    fill to=s value=2\n" +
         body + "  }\n}\n";
}
std::string write(const std::string& tile, const std::string& value) {
  return "map i in 16, c in 16 {\n" + tile + "[i, c] = " + value + "\n}\n";
}
// All elements of the tile, each by another thread than wrote it.
std::string turned(const std::string& to, const std::string& tile) {
  return write(to, to + "[i, c] + " + tile + "[c, i]");
}

TEST(Loops, WhatIsOpenAtABreakIsOpenBehindTheLoop) {
  for (const char* kind : {"", "unroll ", "pipelined(stages=2) "})
    for (int n = 0; n < 2; ++n) {
      const std::string leaves = "if n == 0 {\nbreak\n}\n";
      expect_right(
          with_tiles(fmt::format("for k in 0..3 {{\nfor j in 0..2 {}{{\n", kind) + write("t", "i * 16 + c + k") +
                     leaves + turned("s", "t") + "}\n" + turned("B", "t") + "}\n"),
          {{"n", n}});
    }
  expect_right(with_tiles("for k in 0..3 {\nfor j in 0..2 {\n" + write("t", "i + k") + "break\n" + turned("s", "t") +
                          "}\n" + turned("B", "t") + "}\n"),
               {{"n", 0}});
}

TEST(Loops, WhatIsOpenAtAContinueIsOpenInTheNextTurn) {
  for (int n = 0; n < 4; ++n) {
    const std::string goes_on = "if k == n {\ncontinue\n}\n";
    expect_right(with_tiles("for k in 0..3 {\n" + turned("B", "t") + write("t", "i * 3 + c + k") + goes_on +
                            turned("s", "t") + "}\n" + turned("B", "s")),
                 {{"n", n}});
    // Its condition is read again as well.
    expect_right(with_tiles("while s[3, 0] < 5 {\n" + write("s", "s[i, c] + 1") + "if s[5, 5] == n {\ncontinue\n}\n" +
                            turned("B", "s") + "}\n"),
                 {{"n", n}});
  }
}

TEST(Loops, AReturnLeavesNothingBehind) {
  for (int n = 0; n < 2; ++n)
    expect_right(with_tiles("for k in 0..3 {\n" + write("t", "i + c * k") + "if n == k {\n" + turned("B", "t") +
                            "return\n}\n" + turned("s", "t") + "}\n" + turned("B", "s")),
                 {{"n", n}});
}

// The copy stands before the first barrier of a turn, the last read of its tile behind the last one.
TEST(Loops, ABarrierThatTakesAnothersPlaceLeavesMoreOpen) {
  expect_right(
      "program p {\n  param A: float16[47, 48]\n  param B: int32[32, 8]\n  launch l(bx: 1) threads(tx: 128) {\n"
      "    fragment a: int32[32, 8]\n    shared b: int32[32, 16]\n    shared c: float16[16, 16]\n"
      "    shared d: float32[8, 32]\n    fragment e: int32[16]\n    fragment f: float32[32]\n    fill to=b value=0\n"
      "    fill to=a value=0\n    for k in 0..4 {\n      copy from=A[0 : 16, k : 16] to=c\n"
      "      copy from=A[0 : 8, 0 : 32] to=d\n      fill to=e value=3\n      reduce sum from=b to=e dim=0 clear=false\n"
      "      reduce min from=d to=f dim=0\n      map i in 32, j in 8 {\n"
      "        a[i, j] = a[i, j] + i + int32(c[j, j] * float16(8))\n      }\n      map i in 32, j in 16 {\n"
      "        b[i, j] = select(int32(d[2, j]) >= 6, k, 7)\n      }\n    }\n    copy from=a to=B\n  }\n}\n");
}

}  // namespace
}  // namespace tilewright::simulator
