// Values that one role leaves in shared memory at its end, and another reads at its own: ordered where the program has
// forgotten it, left alone where it has not, or where a barrier could not be passed.
#include "passes/schedule/hand_over.h"

#include <gtest/gtest.h>

#include "driver/cuda_engine.h"
#include "ir/parse.h"
#include "ir/rewrite.h"
#include "passes/canonicalize.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

// A role of 128 threads, one of 64, and one of 64 within another.
struct Text {
  std::string first =
                  "      map i in 64 {\n        sums[i] = A[i] + A[i + 64]\n      }\n      map i in 64 {\n"
                  "        B[i] = A[i]\n      }\n",
              second = "      map i in 64 {\n        C[i] = sums[63 - i]\n      }\n",
              third = "      map i in 64 {\n        D[i] = sums[i] * 2.0\n      }\n", before = "";
  std::string text() const {
    std::string tensors;
    for (const char* name : {"A", "B", "C", "D"})
      tensors += "  param " + std::string(name) + ": float32[" + (*name == 'A' ? "128" : "64") + "]\n";
    return "program hand_over {\n" + tensors +
           "  launch hand_over(bx: 1) threads(tx: 256) {\n    shared sums: float32[64]\n"
           "    barrier ready: uint64[1] arrive=[128]\n    barrier back: uint64[1] arrive=[64]\n" +
           before + "    role 0..128 {\n" + first + "    }\n    role 128..192 {\n" + second +
           "    }\n    role 192..256 {\n    role 192..256 {\n" + third + "    }\n    }\n  }\n}\n";
  }
};

std::vector<passes::HandOver> found(const Text& t) {
  return passes::lower_to_threads(passes::canonicalize(ir::parse(t.text(), "p.tile")), gpu_target("sm_90a"))
      .handed_over.at(0);
}

TEST(HandOver, WhatARoleLeavesAtItsEndIsOrdered) {
  const Text t;
  const auto all = found(t);
  ASSERT_EQ(all.size(), 2U);  // to each of the readers
  for (uint64_t order = 0; order < 3; ++order) {
    std::vector<NDArray> arrays = {NDArray::zeros({128}, f32)};
    for (int64_t i = 0; i < 128; ++i) arrays[0].set_float({i}, static_cast<double>(i));
    for (int i = 0; i < 3; ++i) arrays.push_back(NDArray::zeros({64}, f32));
    const std::vector<Argument> arguments(arrays.begin(), arrays.end());
    const Program program(
        std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(t.text(), "p.tile")}));
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"}).call(arguments);
    for (int64_t i = 0; i < 64; ++i) {
      ASSERT_EQ(arrays[2].get_float({i}), static_cast<double>(2 * (63 - i) + 64));
      ASSERT_EQ(arrays[3].get_float({i}), 2.0 * static_cast<double>(2 * i + 64));
    }
  }
}

TEST(HandOver, TheProgramsOwnOrderIsEnough) {
  Text t;
  t.first += "      arrive barrier=ready[0]\n";
  t.second = "      wait barrier=ready[0] parity=0\n" + t.second;
  t.third = "      wait barrier=ready[0] parity=0\n" + t.third;
  EXPECT_TRUE(found(t).empty());
}

// A role that lets the launches after begin has told no thread of the block.
TEST(HandOver, OtherLaunchesAreNotTold) {
  Text t;
  t.first += "      sync launches arrive_only=true\n", t.second += "      sync launches arrive_only=true\n";
  EXPECT_EQ(found(t).size(), 2U);
}

TEST(HandOver, NobodyWaitsForWhatComesBehindHisRead) {
  Text t;  // the first role waits for the second to have read: who should have written, is not said
  t.first = "      wait barrier=back[0] parity=0\n" + t.first;
  t.second += "      arrive barrier=back[0]\n";
  EXPECT_TRUE(found(t).empty());
}

TEST(HandOver, NobodyWaitsForThreadsThatReturn) {
  Text t;
  t.first = "      if A[tx] < 0.0 {\n        return\n      }\n" + t.first;
  EXPECT_TRUE(found(t).empty());
}

TEST(HandOver, OnlyOfOneWriteThatIsTheLast) {
  Text t;
  t.second = "      map i in 64 {\n        sums[i] = 1.0\n      }\n" + t.second;  // two roles write
  EXPECT_TRUE(found(t).empty());
  t = {};
  t.first += t.first;  // it writes twice
  EXPECT_TRUE(found(t).empty());
}

}  // namespace
}  // namespace tilewright
