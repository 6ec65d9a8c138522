// Lines of a plan two by two: what is taken means what the program means, on a simulated Hopper, whatever the lines
// are.
#include <gtest/gtest.h>

#include "passes/handed_in.h"
#include "tilewright/diagnostic.h"

namespace tilewright {
namespace {

using simulator::Product;

constexpr const char* kLines[] = {"work one_tile",
                                  "work one_tile pairs=As",
                                  "work one_tile pairs=Bs",
                                  "work one_tile blocks_per_multiprocessor=2",
                                  "work persistent blocks=4",
                                  "work persistent blocks=2 reverse_odd_waves",
                                  "work persistent blocks=4 pairs=As",
                                  "work split k=2",
                                  "work stream_k blocks=3",
                                  "role compute all_tiles",
                                  "role compute tiles_in_turn",
                                  "role compute iterations_in_turn",
                                  "ring As, Bs slots=2",
                                  "ring As, Bs slots=4",
                                  "ring As, Bs clipped",
                                  "ring As, Bs unclipped",
                                  "overlap no",
                                  "overlap yes",
                                  "order overlapped of k",
                                  "order alternating of k",
                                  "epilogue whole",
                                  "epilogue chunks",
                                  "epilogue chunks_of_rows",
                                  "epilogue as_written",
                                  "epilogue straight",
                                  "fit none",
                                  "fit half_steps=k",
                                  "fit wide_steps=k at_once=2",
                                  "not a loader"};

// Tiles that reach far beyond their tensors in the last row and column, and no whole number of turns.
std::vector<Product> products() {
  Product ragged = simulator::product_of_five_turns(136, 200);
  ragged.k = 328;
  Product columns = ragged;  // what lies beyond are columns of A, and of B
  columns.m = 200, columns.n = 72, columns.transpose_a = true, columns.transpose_b = false;
  Product large = simulator::product_of_five_turns(264, 72);
  large.k = 200, large.block_m = 128, large.block_k = 32, large.threads = 256, large.through_shared = true;
  large.result = "float16";
  return {ragged, columns, large};
}

std::vector<double> result(const Product& product, const CompileOptions& options) {
  const ir::TileProgram tiles = ir::parse(product.text(), "p.tile");
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const std::vector<NDArray> in = arguments_of(product);
  const NDArray out = NDArray::zeros({product.m, product.n}, tiles.buffers[2].type);
  compile(program, options)(in[0], in[1], out);
  return out.to_floats();
}

class CombinedLines : public testing::TestWithParam<size_t> {};

TEST_P(CombinedLines, MeanTheProgramOrAreRefused) {
  const Product product = products()[GetParam()];
  const std::vector<double> want = result(product, {.engine = Engine::Interpreter});
  int taken = 0;
  for (const char* const& first : kLines)
    for (const char* const& second : kLines) {
      if (&second <= &first) continue;
      const std::string plan = fmt::format("{}\n{}\n", first, second);
      SCOPED_TRACE(plan);
      try {
        EXPECT_EQ(result(product, {.engine = Engine::Simulator, .arch = "sm_90a", .plan = plan}), want);
        ++taken;
      } catch (const CompileError& e) {
        EXPECT_EQ(e.diagnostic().code_text(), "TW8206") << e.what();
      }
    }
  EXPECT_GE(taken, 120);
}

INSTANTIATE_TEST_SUITE_P(Products, CombinedLines, testing::Range(size_t{0}, products().size()));

}  // namespace
}  // namespace tilewright
