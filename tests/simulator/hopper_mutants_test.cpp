// Proof of the checkers for what Hopper adds: right kernels with roles and rings, spoiled in every place.
#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "passes/pipeline.h"
#include "simulator/hopper_programs.h"
#include "simulator/lowered_programs.h"
#include "simulator/mutants.h"
#include "simulator/simulate.h"

namespace tilewright::simulator {
namespace {

struct Score {
  int caught = 0, all = 0;
  std::string list;
};

// `finding`: the code of the error that a program ends with, "wrong" if its result is, or nothing.
template <class Finding>
Score spoil(const ir::ThreadProgram& program, Finding finding) {
  EXPECT_EQ(finding(program), "");
  Score score;
  for (size_t w = 0; w < kWays.size(); ++w) {
    const auto way = static_cast<Way>(w);
    for (int place = 0; place < count_places(program, way); ++place) {
      const std::string found = finding(mutant(program, way, place));
      ++score.all, score.caught += !found.empty();
      score.list += fmt::format("{} {}: {}\n", kWays[w], place, found.empty() ? "NOT FOUND" : found);
    }
  }
  return score;
}

std::string error_of_run(const ir::ThreadProgram& program, const std::vector<NDArray>& arrays) {
  interpreter::Binding binding;
  for (size_t i = 0; i < program.params.size(); ++i)
    binding.buffers.push_back({program.params[i].buffer, arrays[i].data()});
  try {
    simulate(program, binding, {});
  } catch (const LaunchError& error) {
    return error.diagnostic().code_text();
  }
  return "";
}

Score spoil(const HopperGemm& gemm) {
  return spoil(ir::parse_thread_program(gemm.text(), "gemm.tile"), [&](const ir::ThreadProgram& program) {
    const HopperGemm::Arrays arrays = gemm.arrays();
    const std::string error = error_of_run(program, arrays.list());
    return error.empty() && gemm.error(arrays) > 0.004 ? "wrong" : error;
  });
}

// What the compiler makes of a tile program, against what the interpreter says of it.
Score spoil_lowered(const std::string& text) {
  const ir::TileProgram tiles = ir::parse(text, "lowered.tile");
  const ir::TileProgram canonical = passes::run_passes(order_symbols(tiles), passes::all_passes(),
                                                       [](const char*, const ir::TileProgram&, double) {});
  const ir::ThreadProgram threads = lower_cuda(canonical, target::GpuTarget::of(90)).program;
  std::mt19937 random(1);
  const std::vector<NDArray> arrays = arrays_of(tiles, random), want = clones(arrays);
  interpreter::Binding binding;
  for (size_t i = 0; i < tiles.params.size(); ++i) binding.buffers.push_back({tiles.params[i].buffer, want[i].data()});
  interpreter::interpret(tiles, binding);
  return spoil(threads, [&](const ir::ThreadProgram& program) -> std::string {
    const std::vector<NDArray> got = clones(arrays);
    if (std::string error = error_of_run(program, got); !error.empty()) return error;
    for (int64_t i = 0; i < want.back().shape()[0]; ++i)
      for (int64_t j = 0; j < want.back().shape()[1]; ++j)
        if (!(std::abs(want.back().get_float({i, j}) - got.back().get_float({i, j})) < 0.02)) return "wrong";
    return "";
  });
}

// Every thread drains its bulk stores, not only the one that has some.
constexpr int kHarmless = 2;

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

// Who survives changes nothing: a barrier of the warp before one lane releases what only wgmma reads, the wait for an
// empty slot of the first round, the release of a slot that is filled once, the drain of bulk stores before the first
// one, and who executes it.
TEST(HopperMutants, OfWhatTheCompilerMakes) {
  int caught = 0, all = 0;
  std::string list;
  const Product product{200, 128, 264, 128, 64, 64, 256, 2, false, false, false, false, "bfloat16", "float32"};
  for (const std::string& text :
       {product.text(), Attention{100, 200, 64, 64, 64, 128, 2}.text(), std::string(kUserSchedule)}) {
    const Score score = spoil_lowered(text);
    caught += score.caught, all += score.all, list += score.list + "\n";
  }
  EXPECT_GE(all, 110);
  EXPECT_GE(caught, all * 90 / 100) << caught << " of " << all << "\n" << list;
}

}  // namespace
}  // namespace tilewright::simulator
