// Blocks that reach each other's shared memory: code that is right, and beside it every mistake that must be found.
#include "simulator/simulate.h"

namespace tilewright::simulator {
namespace {

// Both blocks want all 16 rows of A, twice: each brings 8 of them for both, by a ring of one slot.
struct Exchange {
  std::string meet = "sync cluster", leave = "    sync cluster\n";
  std::string arrivals = "2", cta = " cta=tx % 32", lanes = "2";
  std::string parity = "(t + 1) % 2", mask = "3", bytes = "2048", cluster = "2";

  std::string text() const {
    return "thread program p {\n  param A: float32[32, 32] alignment=16\n  param B: float32[2, 32, 32]\n"
           "  launch p(bx: 2) threads(tx: 64) cluster(" +
           cluster + ") {\n    barrier full: uint64[1] arrive=[1]\n    barrier empty: uint64[1] arrive=[" + arrivals +
           "]\n    shared s: float32[16, 32] place=0 memory=\"(16, 32): [16:32] x [32:1]; bits 32; swizzle (3, 4, "
           "3)\"\n"
           "    if tx == 0 {\n      init_barriers barriers=full\n      init_barriers barriers=empty\n    }\n    " +
           meet +
           "\n    role 0..32 {\n      elect {\n        for t in 0..2 {\n          wait barrier=empty[0] parity=" +
           parity + "\n          expect barrier=full[0] bytes=" + bytes +
           " arrive=true\n          copy from=A[t * 16 + bx % 2 * 8 : 8, 0 : 32] to=s[bx % 2 * 8 : 8, 0 : 32] "
           "completion=(barrier=full[0]) multicast=" +
           mask +
           "\n        }\n      }\n    }\n    role 32..64 {\n      for t in 0..2 {\n"
           "        wait barrier=full[0] parity=t % 2\n        for i in 0..16 {\n"
           "          B[bx, t * 16 + i, tx - 32] = s[i, tx - 32]\n        }\n        fence async\n        sync warp\n  "
           "      if tx % 32 < " +
           lanes + " {\n          arrive barrier=empty[0]" + cta + "\n        }\n      }\n    }\n" + leave + "  }\n}\n";
  }
  std::string error() const {
    return error_of_text(text(), [] {
      return std::vector<NDArray>{NDArray::zeros({32, 32}, f32), NDArray::zeros({2, 32, 32}, f32)};
    });
  }
};

TEST(Clusters, EachBlockBringsHalfForBoth) {
  NDArray a = NDArray::zeros({32, 32}, f32), b = NDArray::zeros({2, 32, 32}, f32);
  for (int64_t i = 0; i < 32; ++i)
    for (int64_t j = 0; j < 32; ++j) a.set_float({i, j}, static_cast<double>(i * 32 + j));
  for (uint64_t seed = 0; seed < 4; ++seed) {
    SimulateOptions options;
    options.seed = seed;
    b = NDArray::zeros({2, 32, 32}, f32);
    run(Exchange().text(), {a, b}, options);
    for (int64_t block = 0; block < 2; ++block)
      for (int64_t i = 0; i < 32; ++i)
        for (int64_t j = 0; j < 32; ++j) ASSERT_EQ(b.get_float({block, i, j}), a.get_float({i, j}));
  }
  EXPECT_EQ(Exchange().error(), kNoError);
}

TEST(Clusters, BlocksMeetBeforeTheyReachEachOther) {
  expect_error(Exchange{.meet = "sync block"}.error(), "TW9009", "initialize");
  expect_error(Exchange{.leave = ""}.error(), "TW9012", "may end before another block of its cluster reaches");
}

TEST(Clusters, ASlotIsFreeWhenBothBlocksHaveReadIt) {
  // Each gives back its own alone.
  expect_error(Exchange{.arrivals = "1", .cta = "", .lanes = "1"}.error(), "TW9001", "may still");
  // Nobody waits.
  expect_error(Exchange{.parity = "1"}.error(), "TW6008", "more threads arrive");
}

TEST(Clusters, EveryBlockCountsTheBytesOfAll) {
  expect_error(Exchange{.bytes = "1024"}.error(), "TW9", "");
  expect_error(Exchange{.mask = "0"}.error(), "TW6009", "deadlock");
}

TEST(Clusters, AMulticastNamesBlocksOfTheCluster) {
  const ir::ThreadProgram program = ir::parse_thread_program(Exchange{.mask = "5"}.text(), "test.tile");
  try {
    ir::check_valid(program, "the test");
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_NE(std::string(error.what()).find("a copy to blocks 0x5 of a cluster of 2"), std::string::npos)
        << error.what();
  }
}

TEST(Clusters, AGridConsistsOfWholeOnes) {
  std::string text = Exchange().text();
  text.replace(text.find("bx: 2"), 5, "bx: 3");
  expect_error(
      error_of_text(text,
                    [] {
                      return std::vector<NDArray>{NDArray::zeros({32, 32}, f32), NDArray::zeros({2, 32, 32}, f32)};
                    }),
      "TW9090", "in clusters of 2");
}

}  // namespace
}  // namespace tilewright::simulator
