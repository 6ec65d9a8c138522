// Every mistake that the simulator knows, and beside it the code that is right.
#include "simulator/simulate.h"

namespace tilewright::simulator {
namespace {

// Three lines: zeros that everybody knows of, so that a race is no read of what is not written yet.
std::string cleared(int floats) {
  return "    shared s: float32[" + std::to_string(floats) + "] place=0\n    s[tx] = 0.0\n    sync block\n";
}

TEST(Simulator, ABarrierOrdersTheThreadsOfABlock) {
  const std::string store = cleared(128) + "    s[tx] = A[tx]\n";
  const std::string load = "    B[tx] = s[127 - tx]\n";
  expect_error(error_of(128, store + load), "TW9001", "'s' (element");
  Arrays arrays;
  run_launch(128, store + "    sync block\n" + load, arrays);
  for (int64_t i = 0; i < 128; ++i) ASSERT_EQ(arrays.b.get_float({i}), static_cast<double>(127 - i));
  EXPECT_EQ(error_of(128, store + "    B[tx] = s[tx]\n"), kNoError) << "a thread is ordered by itself";
}

TEST(Simulator, ARaceNamesBothPlaces) {
  try {
    run_launch(64, cleared(64) + "    s[tx] = A[tx]\n    B[tx] = s[63 - tx]\n");
    FAIL();
  } catch (const LaunchError& error) {
    const Diagnostic& d = error.diagnostic();
    ASSERT_EQ(d.notes.size(), 1u) << error.what();
    const int first = std::min(d.location.line, d.notes[0].location.line);
    EXPECT_EQ(first, 9);
    EXPECT_EQ(d.location.line + d.notes[0].location.line, 9 + 10);
    EXPECT_NE(d.notes[0].message.find(d.location.line == 9 ? "reads it here" : "writes it here"), std::string::npos);
  }
}

TEST(Simulator, AReadMustBeDoneBeforeTheNextWrite) {
  const std::string body =
      "    shared s: float32[64] place=0\n    for i in 0..2 {\n      s[tx] = A[tx]\n      sync block\n"
      "      B[tx] = s[63 - tx]\n";
  expect_error(error_of(64, body + "    }\n"), "TW9001", "nothing orders the two");
  EXPECT_EQ(error_of(64, body + "      sync block\n    }\n"), kNoError);
}

TEST(Simulator, LanesOfAWarpAreOrderedByItsBarrierOnly) {
  const std::string store = "    shared s: float32[32] place=0\n    s[tx] = A[tx]\n", load = "    B[tx] = s[31 - tx]\n";
  expect_error(error_of(32, store + load), "TW9001", "nothing orders the two");
  EXPECT_EQ(error_of(32, store + "    sync warp\n" + load), kNoError);
  expect_error(error_of(64, cleared(64) + "    s[tx] = A[tx]\n    sync warp\n    B[tx] = s[63 - tx]\n"), "TW9001",
               "'s'");
  EXPECT_EQ(error_of(64,
                     "    shared s: float32[64] place=0\n    s[tx] = A[tx]\n    sync warp\n"
                     "    B[tx] = s[tx // 32 * 32 + 31 - tx % 32]\n"),
            kNoError);
}

TEST(Simulator, ANamedBarrierOrdersThoseThatCome) {
  const std::string head = cleared(128) + "    s[tx] = A[tx]\n    role 0..64 {\n      sync named barrier=1 count=64\n";
  EXPECT_EQ(error_of(128, head + "      B[tx] = s[63 - tx]\n    }\n"), kNoError);
  expect_error(error_of(128, head + "      B[tx] = s[127 - tx]\n    }\n"), "TW9001", "'s'");
  // Who only arrives is waited for, and knows nothing of the others.
  const std::string half = cleared(128) +
                           "    s[tx] = A[tx]\n    role 0..64 {\n"
                           "      sync named barrier=1 count=128 arrive_only=true\n";
  const std::string other =
      "    }\n    role 64..128 {\n      sync named barrier=1 count=128\n      B[tx] = s[127 - tx]\n    }\n";
  EXPECT_EQ(error_of(128, half + other), kNoError);
  expect_error(error_of(128, half + "      B[tx] = s[127 - tx]\n" + other), "TW9001", "'s'");
}

TEST(Simulator, StoresOfTheSameBitsDoNotRace) {
  EXPECT_EQ(error_of(64, "    shared s: float32[1] place=0\n    s[0] = 2.5\n    sync block\n    B[tx] = s[0]\n"),
            kNoError);
  expect_error(error_of(64, "    shared s: float32[1] place=0\n    s[0] = A[tx]\n    sync block\n    B[tx] = s[0]\n"),
               "TW9001", "is written while thread");
}

TEST(Simulator, AtomicsRaceWithPlainAccessesOnly) {
  const std::string add = "    atomic add to=N[0] value=1\n";
  Arrays arrays;
  run_launch(64, add, arrays, 3);
  EXPECT_EQ(arrays.n.get_int({0}), 192);
  expect_error(error_of(64, add + "    if tx == 63 {\n      N[1] = N[0]\n    }\n"), "TW9001", "updates it atomically");
  EXPECT_EQ(error_of(64, add + "    sync block\n    if tx == 63 {\n      N[1] = N[0]\n    }\n"), kNoError);
}

TEST(Simulator, BlocksAreNotOrdered) {
  expect_error(error_of(32, "    B[tx] = A[tx] + float32(bx)\n", 2), "TW9001", "a thread of block 0");
  EXPECT_EQ(error_of(32, "    B[bx * 32 + tx] = A[tx]\n", 2), kNoError);
  expect_error(error_of(32, "    B[bx * 32 + tx] = B[(1 - bx) * 32 + tx]\n", 2), "TW9001", "block 0");
}

TEST(Simulator, NeighboursInOneByteOrWordAreApart) {
  EXPECT_EQ(error_of(64,
                     "    shared s: float16[64] place=0\n    s[tx] = float16(A[tx])\n    sync warp\n"
                     "    B[tx] = float32(s[tx])\n"),
            kNoError);
  EXPECT_EQ(error_of(64, "    shared s: int4[64] place=0\n    s[tx] = int4(tx % 8)\n    N[tx] = int32(s[tx])\n"),
            kNoError);
}

TEST(Simulator, WhatIsReadHasBeenWritten) {
  expect_error(
      error_of(32, "    shared s: float32[64] place=0\n    s[tx] = 1.0\n    sync block\n    B[tx] = s[tx + 1]\n"),
      "TW6002", "'s' at (32) is read before it is written, in block (0), thread (31)");
  expect_error(error_of(32, "    local r: float32[4]\n    r[1] = 1.0\n    B[tx] = r[tx % 2]\n"), "TW6002", "'r'");
}

// What is made of it is not written either; nobody may store that, index by it or ask it.
TEST(Simulator, WhatIsNotWrittenMayBePassedOn) {
  const std::string head =
      "    local r: float32[2]\n    local n: int32[1]\n    if tx < 8 {\n      r[0] = A[tx]\n      n[0] = tx\n    }\n"
      "    r[1] = r[0] * 2.0\n    x: float32 = r[1] + 1.0\n";
  EXPECT_EQ(error_of(32, head + "    if tx < 8 {\n      B[n[0]] = x\n    }\n"), kNoError);
  expect_error(error_of(32, head + "    B[tx] = x\n"), "TW6002", "'r' at (1)");
  expect_error(error_of(32, head + "    r[1] = A[n[0]]\n"), "TW6002", "'n' at (0)");
  expect_error(error_of(32, head + "    r[1] = select(r[0] > 0.0, 1.0, 2.0)\n"), "TW6002", "'r' at (0)");
}

TEST(Simulator, GlobalAccessesAreGuarded) {
  expect_error(error_of(64, "    B[tx * 5] = A[tx]\n"), "TW9002",
               "'B' is accessed out of bounds, in block (0), thread (52)");
  EXPECT_EQ(error_of(64, "    if tx * 5 < 256 {\n      B[tx * 5] = A[tx]\n    }\n"), kNoError);
  expect_error(error_of(64, "    B[tx] = A[tx - 1]\n"), "TW9002", "thread (0)");
  EXPECT_EQ(error_of(64, "    B[tx] = select(0 < tx, A[tx - 1], 0.0)\n"), kNoError);
  expect_error(error_of(64, "    shared s: float32[63] place=0\n    s[tx] = 0.0\n"), "TW6001", "index (63)");
}

TEST(Simulator, WideAccessesAreAligned) {
  const std::string head = "    local r: float32[4]\n";
  Arrays arrays;
  run_launch(32, head + "    copy from=A[tx * 4 : 4] to=r\n    copy from=r to=B[tx * 4 : 4]\n", arrays);
  for (int64_t i = 0; i < 128; ++i) ASSERT_EQ(arrays.b.get_float({i}), static_cast<double>(i));
  expect_error(error_of(32, head + "    copy from=A[tx * 4 + 2 : 4] to=r\n"), "TW9003", "16 bytes to 'A'");
  expect_error(error_of(32, head + "    copy from=A[tx * 8 + 16 : 4] to=r\n"), "TW9002", "past the end of 'A'");
  expect_error(
      error_of(
          32,
          head + "    shared s: float32[128] place=8\n    s[tx] = 0.0\n    sync block\n    copy from=s[0 : 4] to=r\n"),
      "TW9003", "'s'");
  const std::string plain =
      "thread program p {\n  param A: float32[256]\n  launch p(bx: 1) threads(tx: 32) {\n    local r: float32[4]\n"
      "    copy from=A[tx * 4 : 4] to=r\n  }\n}\n";
  EXPECT_THROW(
      try { run(plain, {arrays.a}); } catch (const LaunchError& e) {
        EXPECT_EQ(e.diagnostic().code_text(), "TW9003");
        throw;
      },
      LaunchError)
      << "nobody demands that A is aligned to 16 bytes";
}

TEST(Simulator, BarriersAreReachedByAll) {
  expect_error(error_of(64, "    if tx < 16 {\n      sync block\n    }\n"), "TW9004", "16 of the 32 threads of a warp");
  expect_error(error_of(64, "    if tx < 32 {\n      sync block\n    }\n"), "TW9004", "");
  expect_error(error_of(64, "    if tx < 32 {\n      sync block\n    } else {\n      sync block\n    }\n"), "TW9004",
               "another barrier of the block");
  expect_error(error_of(64, "    if tx < 32 {\n      return\n    }\n    sync block\n"), "TW9004", "");
  expect_error(error_of(64, "    if tx == 3 {\n      return\n    }\n    sync block\n"), "TW9004", "31 of the 32");
  expect_error(error_of(32, "    if tx < 7 {\n      sync warp\n    }\n"), "TW9004", "a barrier of the warp");
}

TEST(Simulator, NamedBarriersAreSixteenAndHaveOneCount) {
  expect_error(error_of(64,
                        "    role 0..32 {\n      sync named barrier=2 count=64\n    }\n"
                        "    role 32..64 {\n      sync named barrier=2 count=96\n    }\n"),
               "TW9005", "named barrier 2 is entered for");
  expect_error(error_of(64, "    sync named barrier=N[0] + 103 count=64\n"), "TW9005", "no hardware barrier 103");
}

TEST(Simulator, ADeadlockSaysWhoWaits) {
  try {
    run_launch(96, "    role 0..64 {\n      sync named barrier=4 count=96\n    }\n");
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.diagnostic().code_text(), "TW6009");
    ASSERT_EQ(error.diagnostic().notes.size(), 2u);
    const std::string text = error.what();
    EXPECT_NE(text.find("threads 32 to 63 wait at named barrier 4, where 64 of 96 threads have arrived"),
              std::string::npos)
        << text;
    EXPECT_EQ(error.diagnostic().notes[0].location.line, 7);
  }
}

TEST(Simulator, ShufflesAreTakenTogether) {
  const std::string shuffle = "    other: float32 = shuffle xor value=A[tx] lane=1 converged=true\n    B[tx] = other\n";
  Arrays arrays;
  run_launch(32, shuffle, arrays);
  for (int64_t i = 0; i < 32; ++i) ASSERT_EQ(arrays.b.get_float({i}), static_cast<double>(i ^ 1));
  expect_error(error_of(32, "    if tx < 16 {\n" + shuffle + "    }\n"), "TW9006", "only 16 come by together");
  expect_error(
      error_of(32,
               "    if tx < 15 {\n      other: float32 = shuffle xor value=A[tx] lane=1\n      B[tx] = other\n    }\n"),
      "TW6007", "lane 15");
}

TEST(Simulator, SharedMemoryHasAnEnd) {
  expect_error(error_of(32, "    shared s: float32[60000] place=0\n    s[tx] = 0.0\n"), "TW9007",
               "'s' ends at byte 240000");
}

TEST(Simulator, AnAsynchronousCopyIsThereWhenItsQueueIsDrained) {
  const std::string copy =
                        "    shared s: float32[128] place=0\n    copy from=A[tx * 4 : 4] to=s[tx * 4 : 4] "
                        "completion=(queue=cp_async)\n"
                        "    commit cp_async\n",
                    load = "    B[tx] = s[127 - tx]\n", drain = "    drain cp_async\n";
  Arrays arrays;
  run_launch(32, copy + drain + "    sync warp\n" + load, arrays);
  for (int64_t i = 0; i < 32; ++i) ASSERT_EQ(arrays.b.get_float({i}), static_cast<double>(127 - i));
  expect_error(error_of(32, copy + "    sync block\n" + load), "TW9001", "copies to it asynchronously");
  expect_error(error_of(32, copy + "    drain cp_async pending=1\n    sync block\n" + load), "TW9001",
               "asynchronously");
  expect_error(error_of(32, copy + drain + load), "TW9001", "nothing orders the two");
  expect_error(error_of(32, copy + "    sync block\n    s[tx] = 0.0\n"), "TW9001", "asynchronously");
  EXPECT_EQ(error_of(32, copy + drain + "    B[tx] = s[tx * 4 + 3]\n"), kNoError) << "a thread's own copy";
}

TEST(Simulator, AnAsynchronousCopyMovesFourBytesAtLeast) {
  const auto copied = [](int bytes) {
    const std::string text = fmt::format(
        "thread program p {{\n  param A: int8[256] alignment=16\n  launch p(bx: 1) threads(tx: 32) {{\n"
        "    shared s: int8[256] place=0\n    copy from=A[tx * {0} : {0}] to=s[tx * {0} : {0}] "
        "completion=(queue=cp_async)\n    commit cp_async\n    drain cp_async\n  }}\n}}\n",
        bytes);
    return error_of_text(text, [] { return std::vector<NDArray>{NDArray::zeros({256}, i8)}; });
  };
  EXPECT_EQ(copied(4), kNoError);
  expect_error(copied(2), "TW9011", "cp.async moves 4, 8 or 16 bytes, not 2");
}

TEST(Simulator, RefusesWhatItDoesNotModel) {
  std::string text = launch(32, "    sync grid\n", 2);
  text.replace(text.find(" {\n    sync"), 2, " cluster(2) {");
  expect_error(error_of_text(text, [] { return Arrays().list(); }), "TW9090", "blocks in clusters");
}

}  // namespace
}  // namespace tilewright::simulator
