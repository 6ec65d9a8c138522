// Programs whose blocks copy for each other, lowered for Hopper: right results without findings, and the CUDA text.
#include "driver/cuda_engine.h"
#include "ir/rewrite.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"
#include "runtime/cuda_kernel.h"
#include "runtime/nvrtc.h"
#include "simulator/lowered_programs.h"
#include "simulator/simulate.h"
#include "tilewright/compile.h"
#include "tilewright/diagnostic.h"

namespace tilewright::simulator {
namespace {

// Each block sums two tiles of its column of A; those with a bit in the mask get the tiles of the lowest.
std::string summed(const std::string& cluster, int mask, const std::string& order = "") {
  return "program summed {\n  param A: float32[64, 256]\n  param B: float32[32, 256]\n"
         "  launch summed(bx: 4, by: 2) threads(tx: 128) cluster(" +
         cluster + ")" + order +
         " {\n    shared s: float32[16, 64]\n    fragment sum: float32[16, 64]\n    fill to=sum value=0.0\n"
         "    for k in 0..2 {\n      copy from=A[by * 32 + k * 16 : 16, bx * 64 : 64] to=s multicast=" +
         std::to_string(mask) +
         "\n      map i in 16, j in 64 {\n        sum[i, j] = sum[i, j] + s[i, j]\n      }\n    }\n"
         "    copy from=sum to=B[by * 16 : 16, bx * 64 : 64]\n  }\n}\n";
}

// What the simulator computes of it, by the block whose tiles each block gets.
template <class Source>
void expect_sums(const std::string& text, Source source) {
  SCOPED_TRACE(text);
  std::mt19937 random(1);
  const ir::TileProgram tiles = ir::parse(text, "summed.tile");
  const std::vector<NDArray> arrays = arrays_of(tiles, random);
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(arrays[0], arrays[1]);
  for (int64_t i = 0; i < 32; ++i)
    for (int64_t j = 0; j < 256; ++j) {
      const auto [bx, by] = source(j / 64, i / 16);
      double want = 0;
      for (int64_t k = 0; k < 2; ++k) want += arrays[0].get_float({by * 32 + k * 16 + i % 16, bx * 64 + j % 64});
      ASSERT_EQ(arrays[1].get_float({i, j}), want) << i << ", " << j;
    }
}

TEST(ClusterCopies, TheLowestBlockCopiesForAllOfTheMask) {
  using Block = std::pair<int64_t, int64_t>;
  expect_sums(summed("4", 3), [](int64_t x, int64_t y) { return Block{x == 1 ? 0 : x, y}; });
  expect_sums(summed("4", 10), [](int64_t x, int64_t y) { return Block{x == 3 ? 1 : x, y}; });
  expect_sums(summed("2, 2", 15), [](int64_t x, int64_t) { return Block{x / 2 * 2, 0}; });
  expect_sums(summed("2", 1), [](int64_t x, int64_t y) { return Block{x, y}; });
}

// A swizzle moves whole clusters.
TEST(ClusterCopies, ClustersStayTogetherInAnyOrder) {
  for (const char* order : {" swizzle(1, row)", " swizzle(2, column)"})
    expect_sums(summed("2", 3, order), [](int64_t x, int64_t y) { return std::pair{x / 2 * 2, y}; });
}

passes::ThreadLowering lowered(const std::string& text) {
  return passes::lower_to_threads(passes::canonicalize(ir::parse(text, "p.tile")), target::GpuTarget::of(90));
}

TEST(ClusterCopies, AClusterThatNothingUsesIsDropped) {
  EXPECT_EQ(lowered(summed("2", 3)).threads.launches[0].cluster, std::vector<int64_t>{2});
  EXPECT_TRUE(lowered(summed("2", 0)).threads.launches[0].cluster.empty());
}

// Two blocks bring half of a tile each for both, by a ring of one slot; they arrive at each other's mbarriers.
std::string exchanged(const std::string& meet) {
  return "program exchanged {\n  param A: float32[64, 32]\n  param B: float32[2, 64, 32]\n"
         "  launch exchanged(bx: 2) threads(tx: 64) cluster(2) {\n    shared s: float32[16, 32]\n"
         "    barrier full: uint64[1] arrive=[1]\n    barrier empty: uint64[1] arrive=[2]\n    if tx < 32 {\n"
         "      for t in 0..4 {\n        wait barrier=empty[0] parity=(t + 1) % 2\n"
         "        expect barrier=full[0] bytes=2048 arrive=true\n"
         "        copy from=A[t * 16 + bx * 8 : 8, 0 : 32] to=s[bx * 8 : 8, 0 : 32] completion=(barrier=full[0]) "
         "multicast=3\n      }\n    } else {\n      for t in 0..4 {\n        wait barrier=full[0] parity=t % 2\n"
         "        for i in 0..16 {\n          B[bx, t * 16 + i, tx - 32] = s[i, tx - 32]\n        }\n"
         "        sync warp\n        if tx % 32 < 2 {\n          arrive barrier=empty[0] cta=tx % 32\n        }\n"
         "      }\n    }\n" +
         meet + "  }\n}\n";
}

TEST(ClusterCopies, BlocksArriveAtEachOthersBarriers) {
  for (const char* meet :
       {"    sync cluster\n", "    sync cluster arrive_only=true\n    sync cluster wait_only=true\n"}) {
    std::mt19937 random(1);
    const ir::TileProgram tiles = ir::parse(exchanged(meet), "exchanged.tile");
    const std::vector<NDArray> arrays = arrays_of(tiles, random);
    const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(arrays[0], arrays[1]);
    for (int64_t block = 0; block < 2; ++block)
      for (int64_t i = 0; i < 64; ++i)
        for (int64_t j = 0; j < 32; ++j) ASSERT_EQ(arrays[1].get_float({block, i, j}), arrays[0].get_float({i, j}));
  }
}

TEST(ClusterCopies, TheTextCompiles) {
  Dump dump("clusters");
  for (const std::string& text : {summed("4", 3), summed("2", 3, " swizzle(2, column)"),
                                  exchanged("    sync cluster arrive_only=true\n    sync cluster wait_only=true\n")}) {
    const CudaText source = write_cuda(passes::canonicalize(ir::parse(text, "p.tile")), "sm_90a", dump);
    EXPECT_NE(source.kernel.text.find(".multicast::cluster"), std::string::npos);
    EXPECT_EQ(source.kernel.text.find("tw_arrive_at(") != std::string::npos, text.find("cta=") != std::string::npos);
    try {
      runtime::Nvrtc::get();
    } catch (const CompileError& e) {
      GTEST_SKIP() << e.what();
    }
    EXPECT_NO_THROW(runtime::cuda::compile_cuda(source.kernel));
  }
}

}  // namespace
}  // namespace tilewright::simulator
