// What a fragment's writers hold, its readers must find: found once on a device, now by the simulator.
#include <gtest/gtest.h>

#include "driver/cuda_engine.h"
#include "ir/parse.h"
#include "passes/canonicalize.h"

namespace tilewright {
namespace {

const passes::Placement place(const std::string& text) {
  const ir::TileProgram program = passes::canonicalize(ir::parse(text, "p.tile"));
  return passes::lower_to_threads(program, gpu_target("sm_90a")).placements[0];
}

TEST(Placement, AReductionBySomeThreadsThatAllThreadsReadGoesThroughMemory) {
  const passes::Placement p = place(R"(program combine {
  param A: float32[16]
  param O: float32[128]
  launch combine(bx: 1) threads(tx: 128) {
    shared S: float32[16]
    fragment total: float32[1]
    copy from=A to=S
    reduce sum from=S to=total
    map i in 128 {
      O[i] = total[0]
    }
  }
}
)");
  EXPECT_TRUE(p.registers.empty());
  ASSERT_EQ(p.in_memory.size(), 1u);
  EXPECT_EQ(p.in_memory.begin()->second, "two of its uses want different layouts");
}

TEST(Placement, ARowsMaximumStaysWithTheThreadsOfTheRow) {
  const passes::Placement p = place(R"(program rows {
  param A: float32[8, 256]
  launch rows(bx: 1) threads(tx: 128) {
    fragment tile: float32[8, 256]
    fragment most: float32[8]
    copy from=A to=tile
    reduce max from=tile to=most dim=1
    map i in 8, j in 256 {
      tile[i, j] = tile[i, j] - most[i]
    }
    copy from=tile to=A
  }
}
)");
  EXPECT_EQ(p.registers.size(), 2u);
  EXPECT_TRUE(p.in_memory.empty());
}

// A scalar in each thread's own memory: all threads have the same, or each its own.
std::string scaled_by(const std::string& value) {
  return "program scaled {\n  param A: float16[64, 64]\n  param S: float32[128]\n  param O: float32[64, 64]\n"
         "  launch scaled(bx: 4) threads(tx: 128) {\n    shared a: float16[64, 64]\n    fragment c: float32[64, 64]\n"
         "    local s: float32\n    copy from=A to=a\n    fill to=c value=0.0\n    for k in 0..4 {\n"
         "      gemm a=a b=a c=c\n      s = " +
         value +
         "\n      map i in 64, j in 64 {\n"
         "        c[i, j] = c[i, j] * s\n      }\n    }\n    copy from=c to=O\n  }\n}\n";
}

TEST(Placement, AScalarThatAllThreadsHaveLeavesAFragmentInRegisters) {
  for (const char* same : {"S[bx]", "S[bx * 4 + k]", "exp(S[0]) * 2.0"})
    EXPECT_TRUE(place(scaled_by(same)).in_memory.empty()) << same;
  for (const char* own : {"S[tx]", "float32(tx // 32)"}) EXPECT_EQ(place(scaled_by(own)).in_memory.size(), 1u) << own;
}

// A variable that each point of a map stores first and nothing else uses, and others.
TEST(Placement, AVariableOfThePointsLeavesAFragmentInRegisters) {
  const auto in_memory = [](const std::string& points, const std::string& after = "") {
    return place(
               "program bounded {\n  param A: float16[64, 64]\n  param O: float32[64, 64]\n  param P: float32[128]\n"
               "  launch bounded(bx: 1) threads(tx: 128) {\n    shared a: float16[64, 64]\n"
               "    fragment c: float32[64, 64]\n    local v: float32\n    copy from=A to=a\n"
               "    fill to=c value=0.0\n    gemm a=a b=a c=c\n    map i in 64, j in 64 {\n" +
               points + "    }\n" + after + "    copy from=c to=O\n  }\n}\n")
        .in_memory.size();
  };
  const std::string bounded = "v = c[i, j]\n if v > 3.0 {\n v = 3.0\n }\n c[i, j] = v\n";
  EXPECT_EQ(in_memory(bounded), 0u);
  EXPECT_EQ(in_memory("if c[i, j] > 3.0 {\n v = 3.0\n c[i, j] = v\n }\n"), 1u);  // on some paths
  EXPECT_EQ(in_memory("v = v + c[i, j]\n c[i, j] = v\n"), 1u);                   // of the points before
  EXPECT_EQ(in_memory(bounded, "    P[tx] = v\n"), 1u);                          // what the last point left
}

}  // namespace
}  // namespace tilewright
