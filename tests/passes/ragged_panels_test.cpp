// Operands across k whose rows are no whole panels of 128 bytes: the last panel is a part of one.
#include <gtest/gtest.h>

#include "driver/cuda_engine.h"
#include "passes/planned.h"
#include "simulator/lowered_programs.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

std::string product(int columns, int step, int threads) {
  return simulator::Product{256, 2 * columns - 8, 192,   threads / 2, columns, step,      threads,
                            3,   false,           false, false,       false,   "float16", "float32"}
      .text();
}

std::vector<double> result(const std::string& text, int columns, Engine engine) {
  const std::vector<NDArray> arrays = {numbers({256, 192}, f16, 1), numbers({192, 2 * columns - 8}, f16, 2),
                                       numbers({256, 2 * columns - 8}, f32, 3)};
  const std::vector<Argument> arguments(arrays.begin(), arrays.end());
  const Program boxed(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text, "p.tile")}));
  compile(boxed, {.engine = engine, .arch = "sm_90a"}).call(arguments);
  return arrays[2].to_floats();
}

struct Row {
  int columns, step, threads;
  int boxes;  // of a step's columns
};

class RaggedPanels : public testing::TestWithParam<Row> {};

TEST_P(RaggedPanels, AreMultipliedByWgmmaAndBroughtInWideBoxes) {
  const auto& [columns, step, threads, boxes] = GetParam();
  const std::string text = product(columns, step, threads);
  const passes::ThreadLowering lowered =
      passes::lower_to_threads(passes::canonicalize(ir::parse(text, "p.tile")), gpu_target("sm_90a"));
  ASSERT_TRUE(lowered.plans[0].has_loader()) << lowered.plans[0].why_no_loader();
  for (const auto& [stmt, choice] : lowered.placements[0].gemms) EXPECT_TRUE(choice.wgmma) << choice.why_not_wgmma;
  int copies = 0;
  for (const ir::Launch& launch : lowered.threads.launches)
    ir::walk(launch.body, [&](const ir::Stmt& s) {
      const auto* c = s.as<ir::Copy>();
      copies += c && c->completion.barrier.valid() && lowered.threads.buffer(c->from.buffer).name == "B";
    });
  EXPECT_EQ(copies, boxes);
  EXPECT_EQ(result(text, columns, Engine::Simulator), result(text, columns, Engine::Interpreter));
}

INSTANTIATE_TEST_SUITE_P(Columns, RaggedPanels,
                         testing::Values(Row{208, 64, 128, 4}, Row{160, 32, 128, 3}, Row{96, 64, 256, 2},
                                         Row{80, 16, 128, 2}, Row{208, 64, 256, 4}),
                         [](const auto& row) {
                           return fmt::format("{}by{}of{}", row.param.columns, row.param.step, row.param.threads);
                         });

}  // namespace
}  // namespace tilewright
