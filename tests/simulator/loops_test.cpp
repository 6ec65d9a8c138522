// Loops of every kind on a GPU: what is open where threads leave a loop or go on with its next turn is ordered, and
// what a pipelined loop stages is found under its new name. The simulator against the interpreter, on both kinds of
// GPUs.
#include <gtest/gtest.h>

#include "driver/arguments.h"
#include "ir/parse.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"
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

// A barrier in front of the loop stands before its condition is read.
TEST(Loops, WhatAConditionReadsIsReadBeforeATurnWritesIt) {
  expect_right(with_tiles("while s[1, 2] != 77 {\n" + write("s", "i * 7 + c") + "break\n}\n" + turned("B", "s")),
               {{"n", 0}});
  expect_right(with_tiles("while s[1, 2] < 5 {\n" + write("s", "s[i, c] + 2") + "}\n" + turned("B", "s")), {{"n", 0}});
}

// Each reads and writes what other threads of the other write.
TEST(Loops, ReductionsIntoOneTileComeOneAfterTheOther) {
  for (const char* from : {"t", "f"})
    for (const char* op : {"max", "sum"})
      expect_right(with_tiles("fragment f: int32[16, 16]\nshared q: int32[16]\nfill to=q value=1\n" +
                              write("t", "i * c") + write("f", "i - c * 3") +
                              fmt::format("reduce {0} from=t to=q dim=0 clear=false\n"
                                          "reduce {0} from={1} to=q dim=1 clear=false\n",
                                          op, from) +
                              write("B", "q[15 - i] + q[c]")),
                   {{"n", 0}});
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

// ---- pipelined loops

// A loop that stages tiles of A in t and does `body` with them, in two to four slots.
void expect_staged(const std::string& copy, const std::string& body, const std::string& range = "0..4") {
  for (int stages = 1; stages <= 4; ++stages)
    expect_right(fmt::format(
        "program p {{\n  param A: int32[64, 128]\n  param B: int32[4, 16, 32]\n  param C: int32[16]\n"
        "  launch l(bx: 1) threads(tx: 64) {{\n    shared t: int32[16, 32]\n"
        "    shared u: int32[16, 32]\n    shared v: int32[16, 1]\n    fragment r: int32[16]\n"
        "    fragment w: int32[32]\n    fragment B_f: int32[16, 32]\n    fill to=u value=0\n    fill to=r value=3\n"
        "    for k in {} pipelined(stages={}) {{\n      copy from={} to=t\n{}    }}\n"
        "    copy from=r to=C\n  }}\n}}\n",
        range, stages, copy, body));
}

TEST(Loops, AStagedCopyMayLieBehindItsTurn) {
  for (const int back : {1, 2, 3}) {
    expect_staged(fmt::format("A[k * 4 - {} : 16, 0 : 32]", 4 * back), "copy from=t to=B[k, 0 : 16, 0 : 32]\n");
    expect_staged(fmt::format("A[k - {} : 16, 0 : 32]", back), "copy from=t to=B[k, 0 : 16, 0 : 32]\n");
  }
  expect_staged("A[3 - k : 16, 0 : 32]", "copy from=t to=B[k, 0 : 16, 0 : 32]\n", "1 : 2");
}

TEST(Loops, EveryOperationFindsAStagedTile) {
  const std::string copy = "A[k * 16 : 16, k * 32 : 32]", away = "copy from=u to=B[k, 0 : 16, 0 : 32]\n";
  for (const int dim : {0, 1})
    for (const char* reverse : {"", " reverse=true"}) {
      expect_staged(copy, fmt::format("scan sum from=t to=u dim={}{}\n", dim, reverse) + away);
      expect_staged(copy, fmt::format("scan max from=t to=B_f dim={}{}\n", dim, reverse) +
                              "copy from=B_f to=B[k, 0 : 16, 0 : 32]\n");
    }
  for (const char* clear : {"", " clear=false"}) {
    expect_staged(copy, fmt::format("reduce sum from=t to=r dim=1{}\n", clear));
    expect_staged(copy, fmt::format("fill to=v value=k\nreduce max from=t to=v dim=1{}\n", clear) +
                            "copy from=v to=B[k, 0 : 16, 0 : 1]\n");
    expect_staged(copy, fmt::format("fill to=w value=k\nreduce bitxor from=t to=w dim=0{}\n", clear) +
                            "map j in 32 {\nB[k, 0, j] = w[j]\n}\n");
    expect_staged(copy, fmt::format("reduce min from=t[4 : 8, 0 : 32] to=r[4 : 8] dim=1{}\n", clear));
  }
  expect_staged(copy, "map i in 16, j in 32 {\nu[i, j] = u[i, j] + t[15 - i, t[i, j] & 31]\n}\n" + away);
}

// A print of a tile comes behind those who write it, and they behind the print.
TEST(Loops, APrintedTileIsWhole) {
  const auto barriers = [](const std::string& between) {
    const std::string text = with_tiles(write("t", "i + c") + between);
    return passes::lower_to_threads(passes::canonicalize(ir::parse(text, "p.tile")), target::GpuTarget::of(80), {});
  };
  const auto count = [&](const std::string& between) {
    int found = 0;
    const passes::ThreadLowering lowered = barriers(between);
    ir::walk(lowered.threads.launches[0].body, [&](const ir::Stmt& s) { found += s.as<ir::Sync>() != nullptr; });
    return found;
  };
  EXPECT_EQ(count("print message=\"t\" buffer=t\n" + write("s", "1")), count("") + 1);
  EXPECT_EQ(count("print message=\"t\" buffer=t\n" + write("t", "1")), count("") + 2);
}

// Which nobody renames: the tile keeps its name, and a barrier stands before.
TEST(Loops, APrintedTileIsNotStaged) {
  testing::internal::CaptureStdout();
  expect_staged("A[k * 16 : 16, 0 : 32]", "print message=\"t\" buffer=t\ncopy from=t to=B[k, 0 : 16, 0 : 32]\n",
                "0..1");
  EXPECT_NE(testing::internal::GetCapturedStdout().find("buffer=t"), std::string::npos);
}

TEST(Loops, MoreStagesThanTurnsOrThanAnybodyNeedsAreNoMoreSlots) {
  for (const char* stages : {"5", "1024", "9223372036854775807"})
    for (const char* range : {"0..0", "0..1", "0..4", "0..n"})
      expect_right(fmt::format("program p {{\n  param A: int32[64, 32]\n  param B: int32[4, 16, 32]\n  param n: int32\n"
                               "  launch l(bx: 1) threads(tx: 64) {{\n    shared t: int32[16, 32]\n"
                               "    for k in {} pipelined(stages={}) {{\n      copy from=A[k * 16 : 16, 0 : 32] to=t\n"
                               "      copy from=t to=B[k, 0 : 16, 0 : 32]\n    }}\n  }}\n}}\n",
                               range, stages),
                   {{"n", 3}});
}

// Row sums beside products, over rings of both kinds.
TEST(Loops, TilesOfProductsAreReducedToo) {
  const struct {
    const char* type;
    int columns;
  } table[] = {{"float32", 64}, {"float16", 64}, {"float16", 16}};
  for (const auto& [type, columns] : table)
    for (int stages = 1; stages <= 3; stages += 2)
      for (const char* clear : {"true", "false"})
        expect_right(fmt::format(
            "program p {{\n  param A: {0}[64, {1}]\n  param B: {0}[{1}, 32]\n  param O: float32[64, 32]\n"
            "  launch l(bx: 1) threads(tx: 128) {{\n    shared As: {0}[64, {2}]\n    shared Bs: {0}[{2}, 32]\n"
            "    fragment C: float32[64, 32]\n    fragment r: float32[64]\n    fill to=C value=0.0\n"
            "    fill to=r value=0.0\n    for k in 0..3 pipelined(stages={3}) {{\n"
            "      copy from=A[0 : 64, k * {2} : {2}] to=As\n      copy from=B[k * {2} : {2}, 0 : 32] to=Bs\n"
            "      reduce sum from=As to=r dim=1 clear={4}\n      gemm a=As b=Bs c=C\n      gemm a=As b=Bs c=C\n    "
            "}}\n"
            "    map i in 64, j in 32 {{\n      C[i, j] = C[i, j] + r[i]\n    }}\n    copy from=C to=O\n  }}\n}}\n",
            type, 3 * columns, columns, stages, clear));
}

// The loader, which runs ahead, knows nothing of a jump; a product that clears its result is none of every turn.
TEST(Loops, ProductsInLoopsThatJump) {
  for (const char* jump : {"break", "continue"})
    for (int n = 0; n < 3; n += 2)
      for (const bool outside : {false, true}) {
        const std::string leaves = fmt::format("if {} == n {{\n{}\n}}\n", outside ? "j" : "k", jump);
        expect_right(
            "program p {\n  param A: float16[128, 128]\n  param B: float16[128, 64]\n  param O: float16[128, 64]\n"
            "  param n: int32\n  launch l(bx: 1) threads(tx: 128) {\n    shared As: float16[64, 32]\n"
            "    shared Bs: float16[32, 64]\n    fragment C: float32[64, 64]\n    fragment D: float32[64, 64]\n"
            "    fill to=D value=0.0\n    for j in 0..3 {\n      fill to=C value=0.0\n" +
                (outside ? leaves : "") +
                "      for k in 0..4 pipelined(stages=3) {\n        copy from=A[bx * 64 : 64, k * 32 : 32] to=As\n"
                "        copy from=B[k * 32 : 32, 0 : 64] to=Bs\n" +
                (outside ? "" : leaves) +
                "        gemm a=As b=Bs c=C\n      }\n      map r in 64, c in 64 {\n"
                "        D[r, c] = D[r, c] * 0.5 + C[r, c]\n      }\n    }\n"
                "    copy from=D to=O[bx * 64 : 64, 0 : 64]\n  }\n}\n",
            {{"n", n}});
      }
}

}  // namespace
}  // namespace tilewright::simulator
