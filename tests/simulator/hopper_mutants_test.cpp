// Proof of the checkers for what Hopper adds: a right kernel with roles and rings, spoiled in every place.
#include "simulator/hopper_programs.h"
#include "simulator/mutants.h"
#include "simulator/simulate.h"

namespace tilewright::simulator {
namespace {

// The code of the error that the program ends with, "wrong" if its result is, or nothing.
std::string finding(const ir::ThreadProgram& program, const HopperGemm& gemm) {
  const HopperGemm::Arrays arrays = gemm.arrays();
  interpreter::Binding binding;
  for (size_t i = 0; i < program.params.size(); ++i)
    binding.buffers.push_back({program.params[i].buffer, arrays.list()[i].data()});
  try {
    simulate(program, binding, {});
  } catch (const LaunchError& error) {
    return error.diagnostic().code_text();
  }
  return gemm.error(arrays) <= 0.004 ? "" : "wrong";
}

// Every thread drains its bulk stores, not only the one that has some.
constexpr int kHarmless = 2;

struct Score {
  int caught = 0, all = 0;
  std::string list;
};

Score spoil(const HopperGemm& gemm) {
  const ir::ThreadProgram program = ir::parse_thread_program(gemm.text(), "gemm.tile");
  EXPECT_EQ(finding(program, gemm), "");
  Score score;
  for (size_t w = 0; w < kWays.size(); ++w) {
    const auto way = static_cast<Way>(w);
    const int places = count_places(program, way);

    for (int place = 0; place < places; ++place) {
      const std::string found = finding(mutant(program, way, place), gemm);
      ++score.all, score.caught += !found.empty();
      score.list += fmt::format("{} {}: {}\n", kWays[w], place, found.empty() ? "NOT FOUND" : found);
    }
  }
  return score;
}

TEST(HopperMutants, OfTwoWarpgroupsThatShareATile) {
  const Score score = spoil({.m = 250, .n = 64, .k = 264, .stages = 2, .tiles = 2});
  EXPECT_EQ(score.caught, score.all - kHarmless) << score.list;
  EXPECT_GE(score.all, 49);
}

TEST(HopperMutants, OfTwoWarpgroupsThatTakeTurns) {
  const Score score = spoil({.m = 250, .n = 64, .k = 264, .stages = 3, .tiles = 4, .ping_pong = true});
  EXPECT_EQ(score.caught, score.all - kHarmless) << score.list;
  EXPECT_GE(score.all, 51);
}

}  // namespace
}  // namespace tilewright::simulator
