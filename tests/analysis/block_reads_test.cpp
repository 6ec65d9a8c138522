// Tensors of which no two blocks copy the same.
#include "analysis/block_reads.h"

#include <gtest/gtest.h>

#include "driver/cuda_engine.h"
#include "example.h"
#include "ir/parse.h"
#include "passes/pipeline.h"

namespace tilewright {
namespace {

std::set<std::string> of_single_blocks(const std::string& grid, const std::string& body) {
  const ir::TileProgram p = ir::parse(
      "program reads {\n  symbol N: int32\n  param A: float16[64, 4096]\n  param T: int32[64]\n"
      "  launch reads(" +
          grid + ") threads(tx: 128) {\n    shared S: float16[8, 64]\n    shared R: float16[8, 64]\n" + body +
          "  }\n}\n",
      "p.tile");
  std::set<std::string> names;
  for (ir::BufferId id : analysis::read_by_single_blocks(p)) names.insert(p.buffer(id).name);
  return names;
}

TEST(BlockReads, TellBlocksApart) {
  const std::string both = "bx: 64, by: 8", one = "bx: 64, by: 1";
  const std::set<std::string> single{"A"}, none;
  EXPECT_EQ(of_single_blocks(both, "    copy from=A[by * 8 : 8, bx * 64 : 64] to=S\n"), single);
  EXPECT_EQ(of_single_blocks("bx: N, by: 8", "    copy from=A[by * 8 : 8, bx * 64 : 64] to=S\n"), single);
  EXPECT_EQ(of_single_blocks(both, "    copy from=A[0 : 8, bx * 64 : 64] to=S\n"), none);
  EXPECT_EQ(of_single_blocks(one, "    copy from=A[0 : 8, bx * 64 : 64] to=S\n"), single);
  // By names, counters, and rows that a tensor names; but a quotient is that of several blocks.
  EXPECT_EQ(of_single_blocks(one,
                             "    for k in bx * 2 : 2 {\n      at: int32 = k * 64\n"
                             "      copy from=A[0 : 8, at : 64] to=S\n    }\n"),
            single);
  EXPECT_EQ(of_single_blocks(one, "    copy from=A[T[bx] : 8, 0 : 64] to=S\n"), single);
  EXPECT_EQ(of_single_blocks(one, "    copy from=A[0 : 8, bx // 4 * 64 : 64] to=S\n"), none);
  // One copy that several blocks make, and what is never copied.
  EXPECT_EQ(of_single_blocks(one, "    copy from=A[0 : 8, bx * 64 : 64] to=S\n    copy from=A[0 : 8, 0 : 64] to=R\n"),
            none);
  EXPECT_EQ(of_single_blocks(one, "    fill to=S value=0.0\n"), none);
}

// By name, of the example's case at a shape for GPUs.
std::map<std::string, int> promotions(const std::string& name, size_t number) {
  std::map<std::string, int> out;
  for (const examples::Example& e : examples::all_examples()) {
    if (e.name != name) continue;
    const Program program = e.cases(examples::Size::Gpu).at(number).program;
    Dump dump(program.name());
    const auto tiles = passes::run_passes(program.box().program, passes::all_passes(), [](auto&&...) {});
    for (const auto& map : write_cuda(tiles, "sm_90a", dump).kernel.plan.tensor_maps)
      out[map.name] = 64 << (static_cast<int>(map.l2_promotion) - 1);
  }
  return out;
}

TEST(BlockReads, DecideWhatAMissOfTmaBrings) {
  const auto product = promotions("gemm", 0);
  EXPECT_EQ(product.at("A"), 256);
  EXPECT_EQ(product.at("B"), 256);
  const auto decoding = promotions("mla_decode", 2);  // 16 heads: one block a sequence
  EXPECT_EQ(decoding.at("KV"), 128);
}

}  // namespace
}  // namespace tilewright
