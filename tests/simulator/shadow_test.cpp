#include "simulator/shadow.h"

#include <gtest/gtest.h>

namespace tilewright::simulator {
namespace {

constexpr int64_t kThreads = 384;

struct Block {
  uint32_t eras = 0;
  Clocks clocks{kThreads, 0, eras};
  Shadow shadow;
  Block() { clocks.new_block(); }

  Access access(int64_t thread, uint32_t instruction) const {
    Access out;
    out.era = clocks.era(), out.clock = clocks.now(thread), out.instruction = instruction;
    out.thread = static_cast<int16_t>(thread);
    return out;
  }
  bool read(uint64_t cell, int64_t thread, uint32_t instruction) {
    return !shadow.read(shadow.cell(cell), access(thread, instruction), clocks);
  }
  size_t rows(uint64_t cell) { return shadow.rows_of_readers(shadow.cell(cell), clocks.era()); }
  std::optional<Conflict> write(uint64_t cell, int64_t thread) {
    return shadow.write(shadow.cell(cell), access(thread, 1000), clocks, [](const Access&) { return false; });
  }
};

TEST(Shadow, LanesThatReadTogetherAreOneRow) {
  Block b;
  for (int64_t t = 0; t < kThreads; ++t) EXPECT_TRUE(b.read(0, t, static_cast<uint32_t>(t / 32) + 1));
  EXPECT_EQ(b.rows(0), kThreads / 32);
  for (int64_t t = 0; t < kThreads; ++t) EXPECT_TRUE(b.read(1, t, static_cast<uint32_t>(t) + 1));
  EXPECT_EQ(b.rows(1), kThreads);
  for (int64_t t = 0; t < kThreads; ++t) EXPECT_TRUE(b.read(1, t, static_cast<uint32_t>(t / 32) + 500));
  EXPECT_EQ(b.rows(1), kThreads / 32);  // who reads again has one row
}

TEST(Shadow, EveryLaneOfARowIsAReader) {
  for (int64_t only : {0, 1, 31, 32, 63, 200, 383}) {
    Block b;
    for (uint64_t cell : {0, 1}) {
      EXPECT_TRUE(b.read(cell, only, 1));
      EXPECT_TRUE(b.read(cell, 100, 2));
      EXPECT_TRUE(b.read(cell, 101, 2));
    }
    const auto found = b.write(0, 100);  // 100 knows of itself
    ASSERT_TRUE(found);
    EXPECT_FALSE(found->other_writes);
    EXPECT_TRUE(found->other.thread == only || found->other.thread == 101);
    b.clocks.new_era();
    EXPECT_FALSE(b.write(1, 100));
  }
}

}  // namespace
}  // namespace tilewright::simulator
