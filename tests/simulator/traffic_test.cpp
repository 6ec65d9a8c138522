// What accesses cost, against sums made by hand.
#include "simulator/simulate.h"

namespace tilewright::simulator {
namespace {

Traffic line_of(const std::vector<LaunchReport>& reports, int line) {
  for (const LineTraffic& l : reports.at(0).lines)
    if (l.location.line == line) return l.traffic;
  return {};
}

// A store of one warp to shared memory by this index; the array has 1056 floats.
Traffic shared_store(const std::string& index) {
  return line_of(run_launch(32, "    shared s: float32[1056] place=0\n    s[" + index + "] = A[tx]\n"), 7);
}

TEST(Traffic, BankConflicts) {
  EXPECT_EQ(shared_store("tx").shared_wavefronts, 1);
  EXPECT_EQ(shared_store("tx * 2").shared_wavefronts, 2);
  EXPECT_EQ(shared_store("tx * 32").shared_wavefronts, 32);
  EXPECT_EQ(shared_store("tx * 33").shared_wavefronts, 1);
  EXPECT_EQ(shared_store("tx * 32").shared_ideal, 1);
  const Traffic same = line_of(
      run_launch(32, "    shared s: float32[1] place=0\n    s[0] = 1.0\n    sync block\n    B[tx] = s[0]\n"), 9);
  EXPECT_EQ(same.shared_wavefronts, 1) << "one word for all lanes";
}

TEST(Traffic, WideSharedAccessesGoByGroupsOfLanes) {
  const std::string head =
      "    shared s: float32[512] place=0\n    local r: float32[4]\n    r[0] = 0.0\n    r[1] = 0.0\n    r[2] = 0.0\n   "
      " r[3] = 0.0\n";
  const Traffic rows = line_of(run_launch(32, head + "    copy from=r to=s[tx * 4 : 4]\n"), 12);
  EXPECT_EQ(rows.shared_wavefronts, 4);
  EXPECT_EQ(rows.shared_ideal, 4);
  const Traffic far = line_of(run_launch(32, head + "    copy from=r to=s[tx * 16 : 4]\n"), 12);
  EXPECT_EQ(far.shared_wavefronts, 16) << "of 8 lanes every other one meets the same 4 banks";
}

TEST(Traffic, GlobalSectors) {
  const auto load = [](const std::string& index) {
    return line_of(run_launch(32, "    x: float32 = A[" + index + "]\n    B[tx] = x\n"), 6);
  };
  const Traffic dense = load("tx");
  EXPECT_EQ(dense.global_sectors, 4);
  EXPECT_EQ(dense.bytes_moved, 128);
  EXPECT_EQ(dense.bytes_used, 128);
  const Traffic strided = load("tx * 8");
  EXPECT_EQ(strided.global_sectors, 32);
  EXPECT_EQ(strided.bytes_moved, 1024);
  EXPECT_EQ(strided.bytes_used, 128);
  const Traffic one = load("5");
  EXPECT_EQ(one.global_sectors, 1);
  EXPECT_EQ(one.bytes_used, 4);
}

TEST(Traffic, BarriersAndAtomicsOfWarps) {
  const auto reports = run_launch(64, "    atomic add to=N[0] value=1\n    sync block\n", {}, 2);
  EXPECT_EQ(line_of(reports, 6).atomics, 4);
  EXPECT_EQ(line_of(reports, 7).barriers, 4);
  EXPECT_EQ(reports[0].blocks, 2);
  EXPECT_EQ(reports[0].total.atomics, 4);
}

}  // namespace
}  // namespace tilewright::simulator
