// TMA copies as agents of their own: code that is right, and beside it every mistake that must be found.
#include "simulator/simulate.h"

namespace tilewright::simulator {
namespace {

// 32 x 32 tiles of float32 in rows of 128 bytes, as TMA swizzles them.
constexpr const char* kTile = "memory=\"(32, 32): [32:32] x [32:1]; bits 32; swizzle (3, 4, 3)\"";
constexpr const char* kTwoTiles = "memory=\"(2, 32, 32): [2:1024] x [32:32] x [32:1]; bits 32; swizzle (3, 4, 3)\"";

struct Matrices {
  NDArray a = NDArray::zeros({100, 96}, f32), b = NDArray::zeros({100, 96}, f32);
  Matrices() {
    for (int64_t i = 0; i < 100; ++i)
      for (int64_t j = 0; j < 96; ++j) a.set_float({i, j}, value(i, j));
  }
  static double value(int64_t i, int64_t j) { return static_cast<double>(i * 96 + j); }
};

std::string program(int threads, const std::string& body) {
  return "thread program p {\n  param A: float32[100, 96] alignment=16\n  param B: float32[100, 96] alignment=16\n"
         "  launch p(bx: 1) threads(tx: " +
         std::to_string(threads) + ") {\n" + body + "  }\n}\n";
}

void run_program(int threads, const std::string& body, const Matrices& m, uint64_t seed = 0) {
  SimulateOptions options;
  options.seed = seed;
  run(program(threads, body), {m.a, m.b}, options);
}

std::string error_in(int threads, const std::string& body) {
  return error_of_text(program(threads, body), [] {
    const Matrices m;
    return std::vector<NDArray>{m.a, m.b};
  });
}

// ---- loads

std::string load_head(const std::string& tile = kTile, const std::string& shape = "32, 32", int place = 0) {
  return "    barrier full: uint64[1] arrive=[1]\n    shared s: float32[" + shape + "] place=" + std::to_string(place) +
         " " + tile + "\n    if tx == 0 {\n      init_barriers barriers=full\n    }\n    sync block\n";
}

std::string issue(const std::string& copies, int bytes, const std::string& who = "tx == 0") {
  return "    if " + who + " {\n      expect barrier=full[0] bytes=" + std::to_string(bytes) + " arrive=true\n" +
         copies + "    }\n";
}

const std::string kLoad = "      copy from=A[32 : 32, 64 : 32] to=s[0 : 32, 0 : 32] completion=(barrier=full[0])\n",
                  kWait = "    wait barrier=full[0] parity=0\n",
                  kUse = "    for i in 0..32 {\n      B[tx % 32, i] = s[i, tx % 32]\n    }\n";

TEST(TmaLoad, IsThereWhenItsPhaseIsComplete) {
  Matrices m;
  const std::string right = load_head() + issue(kLoad, 4096) + kWait + kUse;
  run_program(64, right, m);
  for (int64_t i = 0; i < 32; ++i)
    for (int64_t j = 0; j < 32; ++j) ASSERT_EQ(m.b.get_float({j, i}), Matrices::value(32 + i, 64 + j)) << i << " " << j;
  EXPECT_EQ(error_in(64, right), kNoError);
  expect_error(error_in(64, load_head() + issue(kLoad, 4096) + kUse), "TW9001",
               "a TMA load of thread (0) may still write");
  expect_error(error_in(64, load_head() + issue(kLoad, 4096) + "    sync block\n" + kUse), "TW9001", "may still write");
  expect_error(error_in(64, load_head() + issue(kLoad, 4096) + "    wait barrier=full[0] parity=1\n" + kUse), "TW9009",
               "phase -1 of mbarrier 'full'[0] is waited for");
}

TEST(TmaLoad, OneWaiterTellsTheOthers) {
  const std::string one = "    if tx == 5 {\n      wait barrier=full[0] parity=0\n    }\n";
  EXPECT_EQ(error_in(64, load_head() + issue(kLoad, 4096) + one + "    sync block\n" + kUse), kNoError);
  expect_error(error_in(64, load_head() + issue(kLoad, 4096) + one + kUse), "TW9001", "may still write");
}

TEST(TmaLoad, CountsItsBytes) {
  // Half of the bytes: the phase is complete when half of the tile is there.
  expect_error(error_in(64, load_head() + issue(kLoad, 2048) + kWait + kUse), "TW9001", "may still write");
  expect_error(error_in(64, load_head() + issue(kLoad, 4112) + kWait + kUse), "TW6009", "deadlock");
  expect_error(error_in(64, load_head() + issue(kLoad + kLoad, 4096) + kWait + kUse), "TW9001", "may still write");
  // Bytes may come before they are announced.
  const std::string late =
      "    if tx == 0 {\n" + kLoad + "      expect barrier=full[0] bytes=4096 arrive=true\n    }\n";
  EXPECT_EQ(error_in(64, load_head() + late + kWait + kUse), kNoError);
}

TEST(TmaLoad, ReadsZeroOutsideAndCountsTheWholeBox) {
  Matrices m;
  const std::string copy = "      copy from=A[80 : 32, -8 : 32] to=s[0 : 32, 0 : 32] completion=(barrier=full[0])\n";
  run_program(32, load_head() + issue(copy, 4096) + kWait + kUse, m);
  for (int64_t i = 0; i < 32; ++i)
    for (int64_t j = 0; j < 32; ++j)
      ASSERT_EQ(m.b.get_float({j, i}), i < 20 && j >= 8 ? Matrices::value(80 + i, j - 8) : 0.0) << i << " " << j;
}

TEST(TmaLoad, OverwritesWhatNobodyReadsAnyMore) {
  const auto ring = [](const std::string& release) {
    return "    barrier full: uint64[2] arrive=[1, 1]\n    barrier empty: uint64[2] arrive=[32, 32]\n"
           "    shared s: float32[2, 32, 32] place=0 " +
           std::string(kTwoTiles) +
           "\n    if tx == 0 {\n      init_barriers barriers=full\n      init_barriers barriers=empty\n    }\n"
           "    sync block\n    role 0..32 {\n      elect {\n        for i in 0..3 {\n"
           "          wait barrier=empty[i % 2] parity=(i // 2 + 1) % 2\n"
           "          expect barrier=full[i % 2] bytes=4096 arrive=true\n"
           "          copy from=A[0 : 32, i * 32 : 32] to=s[i % 2, 0 : 32, 0 : 32] "
           "completion=(barrier=full[i % 2])\n        }\n      }\n    }\n"
           "    role 32..64 {\n      for i in 0..3 {\n        wait barrier=full[i % 2] parity=i // 2\n" +
           release + "      }\n    }\n";
  };
  const std::string
      read = "        for j in 0..32 {\n          B[j, i * 32 + tx - 32] = s[i % 2, j, tx - 32]\n        }\n",
      arrive = "        arrive barrier=empty[i % 2]\n", fence = "        fence async\n";
  Matrices m;
  run_program(64, ring(read + fence + arrive), m);
  for (int64_t i = 0; i < 32; ++i)
    for (int64_t j = 0; j < 96; ++j) ASSERT_EQ(m.b.get_float({i, j}), Matrices::value(i, j)) << i << " " << j;
  EXPECT_EQ(error_in(64, ring(read + fence + arrive)), kNoError);
  expect_error(error_in(64, ring(read + arrive)), "TW9008", "read it without a fence for asynchronous writers");
  expect_error(error_in(64, ring(fence + read + arrive)), "TW9008", "read it without a fence");
  expect_error(error_in(64, ring(arrive + read)), "TW9001", "'s' is");
}

TEST(TmaLoad, FindsAGenericWriteBeforeIt) {
  const std::string fill = "    for i in 0..32 {\n      s[i, tx] = 1.0\n    }\n";
  const auto text = [&](const std::string& order) {
    return load_head() + fill + order + issue(kLoad, 4096) + kWait + kUse;
  };
  EXPECT_EQ(error_in(32, text("    fence async\n    sync block\n")), kNoError);
  expect_error(error_in(32, text("    sync block\n")), "TW9008", "without a fence for asynchronous readers");
  expect_error(error_in(32, text("    sync block\n    fence async\n")), "TW9008", "without a fence");
  expect_error(error_in(32, text("    fence async\n")), "TW9001", "'s' is written by a TMA load");
}

TEST(TmaLoad, FindsAnOldBarrierAndWaitsForTheEnd) {
  const std::string no_init =
      "    barrier full: uint64[1] arrive=[1]\n    shared s: float32[32, 32] place=0 " + std::string(kTile) + "\n";
  expect_error(error_in(32, no_init + issue(kLoad, 4096)), "TW9009", "nobody has initialized it");
  expect_error(error_in(32, load_head() + issue(kLoad, 4096)), "TW9012", "nobody waits for phase 0");
}

TEST(TmaLoad, BoxesAreThoseOfTheHardware) {
  const auto error = [](const std::string& head, const std::string& copy) {
    return error_in(32, head + issue("      copy " + copy + " completion=(barrier=full[0])\n", 4096) + kWait);
  };
  expect_error(error(load_head(), "from=A[0 : 32, 0 : 31] to=s[0 : 32, 0 : 31]"), "TW9011",
               "124 bytes, no multiple of 16");
  const std::string part = "      copy from=A[0 : 16, 0 : 32] to=s[4 : 16, 0 : 32] completion=(barrier=full[0])\n";
  EXPECT_EQ(error_in(32, load_head() + issue(part, 2048) + kWait), kNoError) << "from any row on";
  expect_error(error(load_head(), "from=A[0 : 32, 0 : 16] to=s[0 : 32, 16 : 16]"), "TW9011", "");
  expect_error(error(load_head("", "32, 36"), "from=A[0 : 32, 0 : 32] to=s[0 : 32, 0 : 32]"), "TW9011", "not one run");
  expect_error(error(load_head("", "32, 32", 64), "from=A[0 : 32, 0 : 32] to=s[0 : 32, 0 : 32]"), "TW9011",
               "no multiple of 128");
  expect_error(error_in(32, load_head(kTile, "32, 32", 512)), "TW9003", "its layout wants a multiple of 1024");
  expect_error(error(load_head("memory=\"(32, 64): [32:64] x [64:1]; bits 32; swizzle (3, 4, 3)\"", "32, 64"),
                     "from=A[0 : 32, 0 : 64] to=s[0 : 32, 0 : 64]"),
               "TW9011", "more than the 128 in which the swizzle");
}

// ---- stores

std::string store_body(const std::string& order, const std::string& copy, const std::string& end) {
  return "    shared s: float32[32, 32] place=0 " + std::string(kTile) +
         "\n    for i in 0..16 {\n      s[tx // 32 * 16 + i, tx % 32] = A[tx // 32 * 16 + i, tx % 32]\n    }\n" +
         order + "    if tx == 0 {\n      copy from=s[0 : 32, 0 : 32] to=" + copy +
         " completion=(queue=bulk_store)\n      commit bulk_store\n    }\n" + end;
}
const std::string kFenced = "    fence async\n    sync block\n", kTo = "B[68 : 32, 32 : 32]",
                  kDrain = "    if tx == 0 {\n      drain bulk_store\n    }\n";

TEST(TmaStore, StoresWhatIsFencedBeforeTheBarrier) {
  Matrices m;
  run_program(64, store_body(kFenced, "B[80 : 32, 80 : 32]", kDrain), m);
  for (int64_t i = 0; i < 100; ++i)
    for (int64_t j = 0; j < 96; ++j)
      ASSERT_EQ(m.b.get_float({i, j}), i >= 80 && j >= 80 ? Matrices::value(i - 80, j - 80) : 0.0) << "clipped";
  EXPECT_EQ(error_in(64, store_body(kFenced, kTo, kDrain)), kNoError);
  expect_error(error_in(64, store_body("    sync block\n", kTo, kDrain)), "TW9008", "thread (");
  expect_error(error_in(64, store_body("    sync block\n    fence async\n", kTo, kDrain)), "TW9008", "thread (");
  expect_error(error_in(64, store_body("    fence async\n", kTo, kDrain)), "TW9001", "read by a TMA store");
  for (const char* to : {"B[-3 : 32, 32 : 32]", "B[68 : 32, -4 : 32]"})  // an illegal instruction on an H100
    expect_error(error_in(64, store_body(kFenced, to, kDrain)), "TW9011", "a store begins at -");
  expect_error(error_in(64, store_body(kFenced, kTo, "")), "TW9012", "thread (0) ends while what it stores");
}

// What an H200 writes beyond a row's last element, up to 16 bytes.
TEST(TmaStore, WritesWholePieces) {
  const auto error = [](int columns) {
    std::string text = program(64, store_body(kFenced, "B[68 : 32, 64 : 32]", kDrain));
    text.replace(text.find("B: float32[100, 96]"), 19, "B: float32[100, " + std::to_string(columns) + "]");
    text.insert(text.find(" alignment=16\n  launch"), " strides=[96, 1]");
    const Matrices m;
    return error_of_text(text, [&m, columns] {
      return std::vector<NDArray>{m.a, NDArray::borrow(m.b.data(), {100, columns}, f32, {96, 1})};
    });
  };
  EXPECT_EQ(error(92), kNoError);
  expect_error(error(94), "TW9011", "it writes whole pieces of 16 bytes, and a row of 'B' ends in one");
}

// Q's buffer, released before the store out of it has read it: the mistake of a real kernel.
TEST(TmaStore, ItsSourceMayBeWrittenWhenItsQueueIsDrained) {
  const std::string overwrite = "    s[tx // 32, tx % 32] = 0.0\n";
  EXPECT_EQ(error_in(64, store_body(kFenced, kTo, kDrain + "    sync block\n" + overwrite)), kNoError);
  expect_error(error_in(64, store_body(kFenced, kTo, "    sync block\n" + overwrite + kDrain)), "TW9001",
               "'s' is written while a TMA store of thread (0) may still read it");
  const std::string other = "    if tx == 1 {\n      drain bulk_store\n    }\n";
  expect_error(error_in(64, store_body(kFenced, kTo, other + "    sync block\n" + overwrite + kDrain)), "TW9001",
               "may still read it");
  const std::string later = "    if tx == 0 {\n      drain bulk_store pending=1\n    }\n";
  expect_error(error_in(64, store_body(kFenced, kTo, later + "    sync block\n" + overwrite + kDrain)), "TW9001",
               "may still read it");
  EXPECT_EQ(error_in(64, store_body(kFenced, kTo, "    B[0, tx] = s[tx // 32, tx % 32]\n" + kDrain)), kNoError)
      << "both only read";
}

// The same by a ring: the consumer releases Q's slot, which its epilogue has filled with the result, and the producer
// loads the next Q.
TEST(TmaStore, ASlotIsReleasedAfterTheStoreOutOfIt) {
  const auto kernel = [](const std::string& before, const std::string& after) {
    return "    barrier full: uint64[1] arrive=[1]\n    barrier empty: uint64[1] arrive=[32]\n"
           "    shared q: float32[32, 32] place=0 " +
           std::string(kTile) +
           "\n    if tx == 0 {\n      init_barriers barriers=full\n      init_barriers barriers=empty\n    }\n"
           "    sync block\n    role 0..32 {\n      elect {\n        for i in 0..3 {\n"
           "          wait barrier=empty[0] parity=(i + 1) % 2\n"
           "          expect barrier=full[0] bytes=4096 arrive=true\n"
           "          copy from=A[0 : 32, i * 32 : 32] to=q[0 : 32, 0 : 32] completion=(barrier=full[0])\n        }\n"
           "      }\n    }\n    role 32..64 {\n      for i in 0..3 {\n        wait barrier=full[0] parity=i % 2\n"
           "        for j in 0..32 {\n          q[j, tx - 32] = q[j, tx - 32] * 2.0\n        }\n"
           "        fence async\n        sync warp\n" +
           before +
           "        elect {\n          copy from=q[0 : 32, 0 : 32] to=B[0 : 32, i * 32 : 32] "
           "completion=(queue=bulk_store)\n          commit bulk_store\n          drain bulk_store\n        }\n" +
           after + "      }\n    }\n";
  };
  const std::string arrive = "        arrive barrier=empty[0]\n";
  Matrices m;
  run_program(64, kernel("", "        sync warp\n" + arrive), m);
  for (int64_t i = 0; i < 32; ++i)
    for (int64_t j = 0; j < 96; ++j) ASSERT_EQ(m.b.get_float({i, j}), 2 * Matrices::value(i, j)) << i << " " << j;
  EXPECT_EQ(error_in(64, kernel("", "        sync warp\n" + arrive)), kNoError);
  expect_error(error_in(64, kernel(arrive, "")), "TW9001", "TMA");
}

TEST(TmaStore, AddsToMemory) {
  Matrices m;
  const std::string body =
      "    shared s: float32[32, 32] place=0 " + std::string(kTile) +
      "\n    for i in 0..32 {\n      s[i, tx] = A[i, tx]\n    }\n    fence async\n    sync block\n"
      "    if tx == 0 {\n      copy from=s[0 : 32, 0 : 32] to=B[0 : 32, 0 : 32] combine=add "
      "completion=(queue=bulk_store)\n      copy from=s[0 : 32, 0 : 32] to=B[0 : 32, 0 : 32] "
      "combine=add completion=(queue=bulk_store)\n      commit bulk_store\n      drain bulk_store\n"
      "    }\n";
  run_program(32, body, m);
  for (int64_t i = 0; i < 32; ++i)
    for (int64_t j = 0; j < 32; ++j) ASSERT_EQ(m.b.get_float({i, j}), 2 * Matrices::value(i, j));
}

TEST(TmaStore, IsNotSeenInTheSameLaunch) {
  const std::string read = "    B[0, tx] = B[68, 32 + tx % 32]\n";
  expect_error(error_in(64, store_body(kFenced, kTo, kDrain + "    sync grid\n" + read)), "TW9001",
               "copies to it asynchronously");
  expect_error(error_in(64, store_body(kFenced, kTo, kDrain + "    sync block\n    B[0, tx] = B[68, 32 + tx % 32]\n")),
               "TW9001", "copies to it asynchronously");
  expect_error(error_in(64, store_body(kFenced, kTo,
                                       "    if tx == 0 {\n      copy from=s[0 : 32, 0 : 32] to=" + kTo +
                                           " completion=(queue=bulk_store)\n      commit bulk_store\n"
                                           "    }\n" +
                                           kDrain)),
               "TW9001", "'B' is written by a TMA store");
}

TEST(TmaStore, IsOrderedBehindThoseThatAreWritten) {
  const auto again = [](const std::string& drain, const std::string& thread = "0", const std::string& to = kTo) {
    return "    if tx == " + thread + " {\n" + drain + "      copy from=s[0 : 32, 0 : 32] to=" + to +
           " completion=(queue=bulk_store)\n      commit bulk_store\n      drain bulk_store\n    }\n";
  };
  const std::string written = "      drain bulk_store written=true\n", read = "      drain bulk_store\n";
  EXPECT_EQ(error_in(64, store_body(kFenced, kTo, again(written))), kNoError);
  expect_error(error_in(64, store_body(kFenced, kTo, again(read))), "TW9001", "'B' is written by a TMA store");
  expect_error(error_in(64, store_body(kFenced, kTo, again(read, "0", "B[50 : 32, 60 : 32]"))), "TW9001",
               "'B' is written by a TMA store");
  EXPECT_EQ(error_in(64, store_body(kFenced, kTo, again(read, "0", "B[36 : 32, 32 : 32]"))), kNoError);
  expect_error(error_in(64, store_body(kFenced, kTo, again("      drain bulk_store pending=1 written=true\n"))),
               "TW9001", "'B' is written by a TMA store");
  // Of another thread, behind a barrier, or without one.
  const std::string drain = "    if tx == 0 {\n" + written + "    }\n";
  EXPECT_EQ(error_in(64, store_body(kFenced, kTo, drain + "    sync block\n" + again("", "1"))), kNoError);
  expect_error(error_in(64, store_body(kFenced, kTo, drain + again("", "1"))), "TW9001",
               "'B' is written by a TMA store");
  expect_error(error_in(64, store_body(kFenced, kTo, kDrain + "    sync block\n" + again(written, "1"))), "TW9001",
               "'B' is written by a TMA store");
  // What threads read and write then, which TMA comes behind by a fence of its own.
  const std::string change = "    sync block\n    B[68, 32 + tx % 32] = B[69, 32 + tx % 32]\n";
  EXPECT_EQ(error_in(64, store_body(kFenced, kTo, drain + change)), kNoError);
  expect_error(error_in(64, store_body(kFenced, kTo, kDrain + change)), "TW9001", "copies to it asynchronously");
  const std::string fenced = change + "    fence async_all\n    sync block\n";
  EXPECT_EQ(error_in(64, store_body(kFenced, kTo, drain + fenced + again(""))), kNoError);
  expect_error(error_in(64, store_body(kFenced, kTo, drain + change + "    sync block\n" + again(""))), "TW9008",
               "'B' is written by a TMA store");
}

}  // namespace
}  // namespace tilewright::simulator
