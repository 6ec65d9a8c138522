// Blocks that tell each other in global memory what they have done: a ticket, and who draws the last one reads what all
// have written. What is left out of it must be found.
#include "simulator/simulate.h"

namespace tilewright::simulator {
namespace {

struct Tickets {
  std::string before = "    sync block\n", order = " order=acquire_release", behind = "    sync block\n";
  std::string fence_before = "", fence_behind = "";
  std::string draw = "atomic add to=N[0] value=1";

  std::string body() const {
    return "    shared last: int32[1] place=0\n    B[bx * 64 + tx] = A[tx] + 1.0\n" + before + "    if tx == 0 {\n" +
           fence_before + "      old: int32 = " + draw + order + "\n" + fence_behind + "      last[0] = old\n    }\n" +
           behind +
           "    if last[0] == 3 {\n      for i in 0..4 {\n        A[tx + 64 * i] = B[i * 64 + (63 - tx)]\n      }\n    "
           "}\n";
  }
  std::string error() const { return error_of(64, body(), 4); }
};

TEST(Tickets, TheLastBlockReadsWhatAllHaveWritten) {
  Arrays arrays;
  run_launch(64, Tickets().body(), arrays, 4);
  for (int64_t i = 0; i < 256; ++i) ASSERT_EQ(arrays.a.get_float({i}), static_cast<double>(64 - i % 64)) << i;
  EXPECT_EQ(Tickets().error(), kNoError);
}

TEST(Tickets, AnAtomicThatDoesNotReleaseOrAcquireOrdersNothing) {
  for (const char* order : {"", " order=release", " order=acquire"})
    expect_error(Tickets{.order = order}.error(), "TW9001", "while a thread of block");
}

TEST(Tickets, TheOtherThreadsOfABlockAreKnownByABarrier) {
  expect_error(Tickets{.before = ""}.error(), "TW9001", "'B'");
  EXPECT_NE(Tickets{.behind = ""}.error(), kNoError);
}

TEST(Tickets, FencesAroundARelaxedAtomicDoTheSame) {
  const std::string fence = "      fence device\n";
  EXPECT_EQ((Tickets{.order = "", .fence_before = fence, .fence_behind = fence}.error()), kNoError);
  expect_error(Tickets{.order = "", .fence_before = fence}.error(), "TW9001", "'B'");
  expect_error(Tickets{.order = "", .fence_behind = fence}.error(), "TW9001", "'B'");
  EXPECT_EQ((Tickets{.order = " order=acquire", .fence_before = fence}.error()), kNoError);
}

// The last block clears the ticket for the next launch by a plain store: everybody else has drawn.
TEST(Tickets, WhoDrewTheLastMayStoreToTheTicket) {
  const std::string clear = "    if last[0] == 3 and tx == 0 {\n      N[0] = 0\n    }\n";
  EXPECT_EQ(error_of(64, Tickets().body() + clear, 4), kNoError);
  expect_error(error_of(64, Tickets{.order = " order=release"}.body() + clear, 4), "TW9001", "");
}

// A store replaces what the element told: who reads it knows nothing of those who wrote before.
TEST(Tickets, AnotherStoreBreaksTheChain) {
  const std::string body =
      "    if bx == 0 {\n      if tx == 0 {\n        A[0] = 1.0\n        atomic store to=N[0] value=1 order=release\n"
      "      }\n    }\n    if bx == 1 {\n      if tx == 0 {\n        MIDDLE\n      }\n    }\n    if bx == 2 {\n"
      "      if tx == 0 {\n        r: int32 = atomic load to=N[0] order=acquire\n        B[0] = A[0]\n      }\n    }\n";
  const auto with = [&](const std::string& middle) {
    std::string text = body;
    return error_of(32, text.replace(text.find("MIDDLE"), 6, middle), 3);
  };
  EXPECT_EQ(with("atomic add to=N[0] value=1"), kNoError);
  expect_error(with("atomic store to=N[0] value=1"), "TW9001", "'A'");
  EXPECT_EQ(with("q: int32 = atomic add to=N[0] value=1 order=acquire"), kNoError);
}

// In shared memory: of threads of one block.
TEST(Tickets, ThreadsOfABlockTellEachOtherToo) {
  const std::string body =
      "    shared s: float32[64] place=0\n    shared n: int32[1] place=256\n    if tx == 0 {\n      n[0] = 0\n    }\n"
      "    sync block\n    s[tx] = A[tx]\n    old: int32 = atomic add to=n[0] value=1 ORDER\n    if old == 63 {\n"
      "      for i in 0..64 {\n        B[i] = s[i]\n      }\n    }\n";
  const auto with = [&](const std::string& order) {
    std::string text = body;
    return error_of(64, text.replace(text.find("ORDER"), 5, order));
  };
  EXPECT_EQ(with("order=acquire_release"), kNoError);
  expect_error(with(""), "TW9001", "'s'");
}

}  // namespace
}  // namespace tilewright::simulator
