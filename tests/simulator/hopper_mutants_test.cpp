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

TEST(HopperMutants, AreFound) {
  const HopperGemm gemm{.m = 250, .n = 64, .k = 264, .stages = 2, .tiles = 2};
  const ir::ThreadProgram program = ir::parse_thread_program(gemm.text(), "gemm.tile");
  ASSERT_EQ(finding(program, gemm), "");
  int caught = 0, all = 0;
  std::string list;
  for (size_t w = static_cast<size_t>(Way::DropFence); w < kWays.size(); ++w) {
    const auto way = static_cast<Way>(w);
    const int places = count_places(program, way);
    EXPECT_GE(places, 1) << kWays[w];
    for (int place = 0; place < places; ++place) {
      const std::string found = finding(mutant(program, way, place), gemm);
      ++all, caught += !found.empty();
      list += fmt::format("{} {}: {}\n", kWays[w], place, found.empty() ? "NOT FOUND" : found);
    }
  }
  EXPECT_EQ(caught, all) << list;
  if (std::getenv("TILEWRIGHT_SHOW")) fmt::print("{}", list);
}

}  // namespace
}  // namespace tilewright::simulator
