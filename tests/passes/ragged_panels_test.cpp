// Operands across k whose rows are no whole panels of 128 bytes: the last panel is a part of one.
#include <gtest/gtest.h>

#include "driver/cuda_engine.h"
#include "passes/planned.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

std::string product(int columns, int step, int threads) {
  return fmt::format(
      "program product {{\n  param A: float16[256, 192]\n  param B: float16[192, {1}]\n  param C: float32[256, {1}]\n"
      "  launch product(bx: 2, by: {4}) threads(tx: {3}) {{\n    shared As: float16[{5}, {2}]\n"
      "    shared Bs: float16[{2}, {0}]\n    fragment c: float32[{5}, {0}]\n    fill to=c value=0.0\n"
      "    for k in 0..{6} pipelined(stages=3) {{\n      copy from=A[by * {5} : {5}, k * {2} : {2}] to=As\n"
      "      copy from=B[k * {2} : {2}, bx * {0} : {0}] to=Bs\n      gemm a=As b=Bs c=c\n    }}\n"
      "    copy from=c to=C[by * {5} : {5}, bx * {0} : {0}]\n  }}\n}}\n",
      columns, 2 * columns - 8, step, threads, threads == 256 ? 2 : 4, threads == 256 ? 128 : 64, 192 / step);
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
