// mbarriers, elections and the pool of registers: code that is right, and beside it every mistake that must be found.
#include "simulator/simulate.h"

namespace tilewright::simulator {
namespace {

// `count` arrivals, initialized for all; the first line is 6.
std::string initialized(int count) {
  return "    barrier full: uint64[1] arrive=[" + std::to_string(count) +
         "]\n    shared s: float32[64] place=0\n    if tx == 0 {\n      init_barriers barriers=full\n    }\n"
         "    s[tx] = 0.0\n    sync block\n";
}

std::string roles(const std::string& first, const std::string& second) {
  return "    role 0..32 {\n" + first + "    }\n    role 32..64 {\n" + second + "    }\n";
}

const std::string kStore = "      s[tx] = A[tx]\n", kArrive = "      arrive barrier=full[0]\n",
                  kWait = "      wait barrier=full[0] parity=0\n", kLoad = "      B[tx] = s[63 - tx]\n";

TEST(Mbarriers, APhaseOrdersThoseWhoArriveBeforeThoseWhoWait) {
  Arrays arrays;
  run_launch(64, initialized(32) + roles(kStore + kArrive, kWait + kLoad), arrays);
  for (int64_t i = 32; i < 64; ++i) ASSERT_EQ(arrays.b.get_float({i}), static_cast<double>(63 - i));
  EXPECT_EQ(error_of(64, initialized(32) + roles(kStore + kArrive, kWait + kLoad)), kNoError);
  expect_error(error_of(64, initialized(32) + roles(kStore + kArrive, kLoad)), "TW9001", "'s'");
  expect_error(error_of(64, initialized(32) + roles(kArrive + kStore, kWait + kLoad)), "TW9001", "'s'");
  // One thread speaks for the others only if they have told it.
  const std::string one = "      elect {\n        arrive barrier=full[0]\n      }\n";
  expect_error(error_of(64, initialized(1) + roles(kStore + one, kWait + kLoad)), "TW9001", "'s'");
  EXPECT_EQ(error_of(64, initialized(1) + roles(kStore + "      sync warp\n" + one, kWait + kLoad)), kNoError);
}

TEST(Mbarriers, AFreshBarrierIsPassedByParityOne) {
  expect_error(error_of(64, initialized(32) + roles(kStore + kArrive, "      wait barrier=full[0] parity=1\n" + kLoad)),
               "TW", "");
  EXPECT_EQ(error_of(64, initialized(32) + roles("", "      wait barrier=full[0] parity=1\n")), kNoError);
}

TEST(Mbarriers, ARingPassesASlotBackAndForth) {
  const auto ring = [](int full_count, const std::string& parity, const std::string& release) {
    const std::string count = std::to_string(full_count);
    return "    barrier full: uint64[2] arrive=[" + count + ", " + count +
           "]\n    barrier empty: uint64[2] arrive=[32, 32]\n    shared s: float32[2, 32] place=0\n"
           "    if tx == 0 {\n      init_barriers barriers=full\n      init_barriers barriers=empty\n    }\n    sync "
           "block\n" +
           roles("      for i in 0..5 {\n        wait barrier=empty[i % 2] parity=" + parity +
                     "\n        s[i % 2, tx] = A[i * 32 + tx]\n        arrive barrier=full[i % 2]\n      }\n",
                 "      for i in 0..5 {\n        wait barrier=full[i % 2] parity=i // 2 % 2\n"
                 "        B[i * 32 + tx - 32] = s[i % 2, 63 - tx]\n" +
                     release + "      }\n");
  };
  const std::string release = "        arrive barrier=empty[i % 2]\n", right = "(i // 2 + 1) % 2";
  Arrays arrays;
  run_launch(64, ring(32, right, release), arrays);
  for (int64_t i = 0; i < 160; ++i) ASSERT_EQ(arrays.b.get_float({i}), static_cast<double>(i / 32 * 32 + 31 - i % 32));
  EXPECT_EQ(error_of(64, ring(32, right, release)), kNoError);
  expect_error(error_of(64, ring(32, "i // 2 % 2", release)), "TW6009", "deadlock");
  expect_error(error_of(64, ring(32, right, "")), "TW6009", "deadlock");
  expect_error(error_of(64, ring(16, right, release)), "TW9", "");
  expect_error(error_of(64, ring(32, "1", release)), "TW9", "");
}

TEST(Mbarriers, ADeadlockSaysWhoWaitsForWhat) {
  try {
    run_launch(64, initialized(33) + roles(kStore + kArrive, kWait + kLoad));
    FAIL();
  } catch (const LaunchError& error) {
    EXPECT_EQ(error.diagnostic().code_text(), "TW6009");
    const std::string text = error.what();
    EXPECT_NE(text.find("threads 32 to 63 wait for phase 0 (parity 0) of mbarrier 'full'[0], which misses 1 of 33 "
                        "arrivals and misses 0 bytes"),
              std::string::npos)
        << text;
  }
}

TEST(Mbarriers, AreInitializedOnceBeforeTheirUse) {
  const std::string buffers = "    barrier full: uint64[1] arrive=[1]\n",
                    init = "    if tx == 0 {\n      init_barriers barriers=full\n    }\n",
                    use = "    if tx == 40 {\n      arrive barrier=full[0]\n    }\n";
  EXPECT_EQ(error_of(64, buffers + init + "    sync block\n" + use), kNoError);
  expect_error(error_of(64, buffers + "    sync block\n" + use), "TW9009", "nobody has initialized it");
  expect_error(error_of(64, buffers + init + use), "TW9009", "initializ");
  expect_error(error_of(64, buffers + "    init_barriers barriers=full\n"), "TW9009", "32 threads initialize");
  expect_error(error_of(64, buffers + init + "    sync block\n" + init), "TW9009", "a second time");
}

TEST(Mbarriers, HaveBytesOfTheirOwn) {
  const auto places = [](const std::string& barrier) {
    return "    barrier full: uint64[2] arrive=[1, 1] place=" + barrier +
           "\n    shared s: float32[64] place=0\n    s[tx] = 0.0\n";
  };
  EXPECT_EQ(error_of(64, places("256")), kNoError);
  expect_error(error_of(64, places("248")), "TW9009", "'full' share bytes of shared memory with 's'");
  expect_error(error_of(64, places("260")), "TW9003", "no multiple of 8");
}

TEST(Mbarriers, CountTheirArrivals) {
  const std::string late = "      expect barrier=full[0] bytes=16\n";
  expect_error(error_of(64, initialized(32) + roles("      elect {\n  " + late + "      }\n" + kArrive + kArrive, "")),
               "TW6008", "more threads arrive at mbarrier 'full'[0] than the 32");
  expect_error(error_of(64, initialized(32) +
                                roles("      elect {\n        expect barrier=full[0] bytes=2000000\n      }\n", "")),
               "TW9009", "it counts up to 1048575");
}

// Two phases while the waiter looks away: it cannot tell them from none.
TEST(Mbarriers, AWaiterMustNotMissAPhase) {
  expect_error(error_of(64, initialized(32) + roles(kArrive + kWait + kArrive, kWait)), "TW9009",
               "phase 0 of mbarrier 'full'[0] is waited for, but phase 1 is complete too");
  const std::string two =
                        "    barrier both: uint64[2] arrive=[32, 32]\n    if tx == 0 {\n      init_barriers "
                        "barriers=both\n    }\n    sync block\n",
                    arrive = "      arrive barrier=both[0]\n", answer = "      arrive barrier=both[1]\n";
  EXPECT_EQ(error_of(64, two + roles(arrive + "      wait barrier=both[1] parity=0\n" + arrive,
                                     "      wait barrier=both[0] parity=0\n" + answer +
                                         "      wait barrier=both[0] parity=1\n")),
            kNoError);
}

TEST(Mbarriers, AnArrivalCountsInAPhaseThatIsKnown) {
  expect_error(error_of(64, initialized(32) + roles(kArrive + kArrive, "")), "TW9009",
               "counts in phase 1, but nothing tells this thread that phase 0 is complete");
  EXPECT_EQ(error_of(64, initialized(32) + roles(kArrive + kWait + kArrive, "")), kNoError);
  expect_error(error_of(64, initialized(32) + roles(kArrive, kArrive)), "TW9009", "counts in phase 1");
  EXPECT_EQ(error_of(64, initialized(64) + roles(kArrive, kArrive)), kNoError);
}

TEST(Mbarriers, AnElectionTakesAWholeWarp) {
  EXPECT_EQ(error_of(32, "    elect {\n      B[0] = A[5]\n    }\n"), kNoError);
  expect_error(error_of(32, "    if tx < 16 {\n      elect {\n        B[0] = A[5]\n      }\n    }\n"), "TW9006",
               "an election counts on all lanes");
}

// 384 threads start with 168 registers each.
TEST(SetRegisters, TakesFromAPoolThatTheBlockShares) {
  const auto split = [](int producer, int consumer) {
    return "    role 0..128 {\n      set_registers count=" + std::to_string(producer) +
           "\n    }\n    role 128..384 {\n      set_registers count=" + std::to_string(consumer) + "\n    }\n";
  };
  EXPECT_EQ(error_of(384, split(24, 240)), kNoError);
  EXPECT_EQ(error_of(384, split(40, 232)), kNoError);
  expect_error(error_of(384, split(40, 240)), "TW6009", "deadlock");
  expect_error(error_of(384, "    if tx < 16 {\n      set_registers count=24\n    }\n"), "TW9006", "set_registers");
}

// Two such blocks at once leave a thread 80, with which the device waits for ever, too.
TEST(SetRegisters, BlocksOfAMultiprocessorShareThem) {
  const auto split = [](int producer, int consumer) {
    std::string text = launch(384, fmt::format("    role 0..128 {{\n      set_registers count={}\n    }}\n"
                                               "    role 128..384 {{\n      set_registers count={}\n    }}\n",
                                               producer, consumer));
    text.insert(text.find("threads(tx: 384)") + 16, " min_blocks(2)");
    return error_of_text(text, [] { return Arrays().list(); });
  };
  EXPECT_EQ(split(24, 104), kNoError);
  expect_error(split(40, 232), "TW6009", "deadlock");
}

}  // namespace
}  // namespace tilewright::simulator
