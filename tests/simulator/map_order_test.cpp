// Accesses of one point of a Map, and of the turns of a vectorized loop, happen in the order in which they are written,
// whichever of them the code of threads moves as vectors.
#include <gtest/gtest.h>

#include "driver/arguments.h"
#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "ir/parse.h"
#include "ir/verify.h"
#include "passes/pipeline.h"
#include "simulator/against_interpreter.h"

namespace tilewright::simulator {
namespace {

std::string program(const std::string& params, const std::string& body) {
  return "program p {\n" + params + "  launch l(bx: 1) threads(tx: 64) {\n" + body + "  }\n}\n";
}

ir::TileProgram tiles_of(const std::string& text) {
  ir::TileProgram tiles = ir::parse(text, "map.tile");
  ir::check_valid(tiles);
  return tiles;
}

void expect_same(const std::string& params, const std::string& body) {
  const std::string text = program(params, body);
  SCOPED_TRACE(text);
  const ir::TileProgram tiles = tiles_of(text);
  expect_interpreted(tiles);
}

std::string cuda_of(const std::string& text) {
  const ir::TileProgram tiles =
      passes::run_passes(order_symbols(tiles_of(text)), passes::all_passes(), [](auto&&...) {});
  Dump dump("p");
  return write_cuda(tiles, "sm_90a", dump).kernel.text;
}

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

constexpr const char* kThree = "  param A: int32[16, 32]\n  param B: int32[16, 32]\n  param C: int32[16, 32]\n";

TEST(MapOrder, AnElementIsReadAsItWasStored) {
  expect_same(kThree, R"(
    map i in 16, j in 32 {
      B[i, j] = A[i, j] * 2
      C[i, j] = B[i, j] + 1
    }
)");
  expect_same(kThree, R"(
    shared S: int32[16, 32]
    fill to=S value=7
    map i in 16, j in 32 {
      B[i, j] = S[i, j] - A[i, j]
      S[i, j] = i + j
      C[i, j] = S[i, j] * B[i, j]
    }
    copy from=S to=A
)");
  expect_same(kThree, R"(
    shared S: int32[16, 32]
    fill to=S value=7
    map i in 16, j in 32 {
      S[i, j] = i + j
      if j < 20 {
        S[i, j] = A[i, j]
      }
      C[i, j] = S[i, j]
      S[i, j] = S[i, j] + 1
    }
    copy from=S to=B
)");
}

TEST(MapOrder, WhatIsStoredStaysAVector) {
  const std::string text = cuda_of(program(kThree, R"(
    map i in 16, j in 32 {
      B[i, j] = A[i, j] * 2
      C[i, j] = B[i, j] + 1
    }
)"));
  EXPECT_EQ(count(text, "B_vector[r_1]"), 2) << text;  // stored, and read from there
  EXPECT_EQ(count(text, "(uint4*)&B["), 1) << text;
  EXPECT_EQ(count(text, "(const uint4*)&B["), 0) << text;
}

TEST(MapOrder, AnElementThatDoesNotExistIsReadAsItsFillValue) {
  expect_same("  param A: int32[16, 32]\n  param B: int32[9, 32] fill=5\n  param C: int32[16, 32]\n", R"(
    map i in 16, j in 32 {
      B[i, j] = A[i, j] * 2
      C[i, j] = B[i, j] + 1
    }
)");
}

TEST(MapOrder, AsynchronousCopiesBringTheFillValue) {
  for (const char* fill : {"", " fill=7"})
    expect_same(fmt::format("  param A: int32[2, 4]{}\n  param B: int32[4, 16]\n", fill), R"(
    shared t: int32[4, 16]
    copy from=A[0 : 4, 0 : 16] to=t completion=(queue=cp_async)
    commit cp_async
    drain cp_async
    sync block
    copy from=t to=B
)");
}

// A row that is surely outside is one that is not read.
TEST(MapOrder, AsynchronousCopiesOfNothingBringZeros) {
  for (const char* row : {"1", "-1"})
    expect_same("  param A: float16[1, 64]\n  param B: float16[1, 64]\n", fmt::format(R"(
    shared t: float16[1, 64]
    for k in 0..2 pipelined(stages=3) {{
      copy from=A[{} : 1, 0 : 64] to=t
      copy from=t to=B
    }}
)",
                                                                                      row));
}

TEST(MapOrder, LoopsAddUp) {
  for (const char* to : {"S", "C"})
    expect_same(kThree, fmt::format(R"(
    shared S: int32[16, 32]
    fill to=S value=1
    map i in 16, j in 32 {{
      for k in 0..16 {{
        {0}[i, j] = {0}[i, j] + A[i, k] * B[k, j]
      }}
    }}
    copy from=S to=B
)",
                                    to));
  expect_same(kThree, R"(
    shared S: int32[16, 32]
    fill to=S value=1
    map i in 16, j in 32 {
      s: int32 = S[i, j]
      for k in 0..3 {
        C[i, j] = C[i, j] + S[i, j]
        S[i, j] = S[i, j] + A[i, k] + s
      }
      B[i, j] = S[i, j]
    }
)");
}

TEST(MapOrder, ViewsAreTheMemoryThatTheyLookInto) {
  expect_same(kThree, R"(
    shared S: int32[16, 32]
    shared F: int32[512] view=S
    fill to=S value=1
    map i in 16, j in 32 {
      B[i, j] = F[i * 32 + j]
      F[i * 32 + j] = A[i, j]
      C[i, j] = S[i, j]
    }
)");
  expect_same(kThree, R"(
    shared S: int32[16, 32]
    shared F: float32[16, 32] view=S
    fill to=S value=1
    map i in 16, j in 32 {
      S[i, j] = A[i, j]
      B[i, j] = bitcast(int32, F[i, j])
      F[i, j] = 1.0
      C[i, j] = S[i, j]
    }
)");
}

TEST(MapOrder, ElementsThatDifferForSureDoNotHoldEachOtherUp) {
  const std::string body = R"(
    map i in 8, j in 32 {
      B[i * 2, j] = A[i, j]
      C[i, j] = B[i * 2 + 1, j]
    }
)";
  expect_same(kThree, body);
  EXPECT_EQ(count(cuda_of(program(kThree, body)), "(const uint4*)&B["), 1);
}

TEST(MapOrder, TurnsOfAVectorizedLoopAreThoseOfASerialOne) {
  expect_same(kThree, R"(
    if tx < 16 {
      for v in 0..4 vectorized {
        B[tx, v + 1] = B[tx, v] + A[tx, v]
      }
      for v in 0..4 vectorized {
        C[tx, v] = A[tx, v]
        C[tx, v + 8] = C[tx, 0] + C[tx, 3]
      }
      for v in 0..4 vectorized {
        B[tx, v + 8] = B[tx, v + 4] + 1
      }
    }
)");
}

TEST(MapOrder, ThreadsThatHoldCopiesDoNotReadWhatOneOfThemStores) {
  const char* params = "  param A: int32[8, 128]\n  param B: int32[8]\n  param C: int32[8]\n";
  const std::string head = R"(
    fragment t: int32[8, 128]
    fragment u: int32[8]
    fragment w: int32[8]
    copy from=A to=t
    reduce sum from=t to=u dim=1
)";
  const std::string stored = head + R"(
    map i in 8 {
      B[i] = u[i] + 1
      w[i] = B[i] + u[i]
    }
    copy from=w to=C
)";
  expect_same(params, stored);
  EXPECT_EQ(count(cuda_of(program(params, stored)), "(tw_shared +"), 0);  // the fragments stay in registers
  expect_same(params, head + R"(
    map i in 8 {
      x: int32 = B[i] * 2
      w[i] = x + u[i]
      B[i] = x + 1
      if 3 < i {
        B[i] = w[i]
      }
      u[i] = B[i]
    }
    copy from=w to=C
    copy from=u to=A[1, 0 : 8]
)");
}

// Where nothing but memory changes, one of the threads with copies runs the point; else all have what it needs.
TEST(MapOrder, OneOfTheThreadsThatHoldCopiesChangesMemory) {
  const std::string head = R"(
    shared d: int32[8]
    shared v: int32[8]
    fragment t: int32[8, 128]
    fragment u: int32[8]
    fill to=d value=2
    copy from=A to=t
    reduce sum from=t to=u dim=1
)";
  const char* params = "  param A: int32[8, 128]\n  param B: int32[8]\n  param C: int32[8]\n";
  const std::string own = head + R"(
    map i in 8 {
      v[i] = d[i]
      d[i] = v[i] * u[i]
      x: int32 = d[i] + C[i]
      C[i] = x + u[i]
      old: int32 = atomic add to=d[i] value=u[i]
      B[i] = old + C[i]
    }
    copy from=d to=A[0, 0 : 8]
)";
  expect_same(params, own);
  EXPECT_EQ(count(cuda_of(program(params, own)), "(tw_shared +"), 2);  // d and v
  for (const char* change : {"v[i] = d[i]\n      d[i] = v[i] * u[i]\n      u[i] = u[i] + 1\n",
                             "old: int32 = atomic add to=d[i] value=1\n      u[i] = u[i] + old\n",
                             "x: int32 = d[i]\n      d[i] = x * u[i]\n      u[i] = x\n"})
    expect_same(params,
                head + "    map i in 8 {\n      " + change + "    }\n    copy from=d to=B\n    copy from=u to=C\n");
}

// Of what is read with the elements beside it, and used under a condition alone, some may be unwritten.
TEST(MapOrder, WhatIsReadTooEarlyAndNotUsedNeedNotBeWritten) {
  expect_same("  param A: int32[8]\n", R"(
    shared S: int32[8, 8]
    map i in 8, j in 8 {
      if 100 < A[i] {
        S[0, 0] = S[0, j]
      }
    }
)");
  const std::string used = program("  param A: int32[8, 8]\n", R"(
    shared S: int32[8, 8]
    map i in 8 {
      if 100 < A[0, i] {
        S[0, i] = 1
      }
    }
    map i in 8, j in 8 {
      if 0 == i {
        A[i, j] = S[i, j]
      }
    }
)");
  for (const char* arch : {"sm_80", "sm_90a"}) {
    try {
      results_of(tiles_of(used), {.engine = Engine::Simulator, .arch = arch});
      ADD_FAILURE() << "it is used";
    } catch (const Error& error) {
      EXPECT_EQ(error.diagnostic().code_text(), "TW6002");
    }
  }
}

TEST(MapOrder, WhatAConditionKeepsFromBeingReadIsNotRead) {
  expect_same("  param A: int32[16, 32]\n  param C: int32[16, 32]\n", R"(
    shared S: int32[16, 16]
    map i in 16, j in 16 {
      S[i, j] = A[i, j]
    }
    map i in 16, j in 32 {
      C[i, j] = select(j < 16, S[i, j], A[i, j])
    }
    map i in 32, j in 16 {
      if i < 16 {
        C[i, j] = S[i, j] + 1
      }
    }
)");
}

// Where a tensor lies is computed in the body, and read with every element of it.
TEST(MapOrder, TensorsAtAddressesThatAreLookedUp) {
  const ir::TileProgram tiles = tiles_of(R"(program p {
  param P: pointer[4]
  param O: float32[4, 8]
  launch l(bx: 4) threads(tx: 64) {
    n: int32 = bx * 2 + 8
    a: pointer = P[bx]
    global X: float32[n] address=a
    shared S: float32[8]
    for k in 0..3 pipelined(stages=2) {
      b: pointer = P[(bx + k) % 4]
      global Y: float32[8] address=b
      copy from=Y[0 : 8] to=S
      map i in 8 {
        O[bx, i] = O[bx, i] + S[i] * 2.0
      }
    }
    map i in 8 {
      O[bx, i] = O[bx, i] + X[i]
    }
  }
}
)");
  const Program handle(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const NDArray rows = NDArray::zeros({4, 16}, f32), table = NDArray::zeros({4}, tiles.buffers[0].type);
  for (int64_t i = 0; i < 64; ++i) rows.set_float({i / 16, i % 16}, static_cast<double>(i));
  for (int i = 0; i < 4; ++i)
    static_cast<const float**>(table.data())[i] = static_cast<const float*>(rows.data()) + 16 * i;
  const auto result = [&](const CompileOptions& options) {
    const NDArray out = NDArray::zeros({4, 8}, f32);
    compile(handle, options)(table, out);
    return out.to_floats();
  };
  const std::vector<double> want = result({.engine = Engine::Interpreter});
  EXPECT_EQ(want[9], 17 + 2 * (17 + 33 + 49));
  for (const char* arch : {"sm_80", "sm_90a"})
    EXPECT_EQ(result({.engine = Engine::Simulator, .arch = arch}), want) << arch;
}

TEST(MapOrder, AnElementKnownToBeOutsideIsNotAccessed) {
  const char* params = "  param A: int32[2, 32, 16]\n  param C: int32[16, 16]\n";
  expect_same(params, R"(
    map i in 16, j in 16 {
      C[i, j] = A[2, i, j] + A[1, i + 24, j] + 1
      A[5, i, j] = 3
      A[i - 16, 0, j] = 4
    }
)");
  expect_same(params, R"(
    shared S: int32[16, 16]
    copy from=A[2, 8 : 16, 0 : 16] to=S
    copy from=S to=C
    copy from=S to=A[-1, 0 : 16, 0 : 16]
    copy from=A[1, -16 : 16, 0 : 16] to=S
)");
}

}  // namespace
}  // namespace tilewright::simulator
