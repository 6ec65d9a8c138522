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
#include "tilewright/language.h"

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

// Each block sends a tile to the one after it, from shared memory or registers, with a barrier or without.
struct Sent {
  std::string from = "s", type = "float32", completion = " completion=(barrier=full[0])";
  std::string tell = "    wait barrier=full[0] parity=0\n", prepare = "    sync cluster\n";
  std::string text() const {
    return "program sent {\n  param A: float32[128, 64]\n  param B: " + type +
           "[128, 64]\n"
           "  launch sent(bx: 4) threads(tx: 128) cluster(4) {\n    shared s: float32[32, 64]\n"
           "    fragment f: float32[32, 64]\n    shared d: " +
           type + "[32, 64]\n    shared there: " + type +
           "[32, 64] view=d cta=(bx + 1) % 4\n"
           "    barrier full: uint64[1] arrive=[1]\n    fill to=d value=0.0\n" +
           prepare + "    copy from=A[bx * 32 : 32, 0 : 64] to=f\n    copy from=f to=s\n    copy from=" + from +
           " to=there" + completion + "\n" + tell + "    copy from=d to=B[bx * 32 : 32, 0 : 64]\n  }\n}\n";
  }
  Program program() const {
    return Program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text(), "sent.tile")}));
  }
  std::string error() const {
    const NDArray a = NDArray::zeros({128, 64}, f32), b = NDArray::zeros({128, 64}, f32);
    a.assign_floats(std::vector<double>(128 * 64, 2));
    try {
      compile(program(), {.engine = Engine::Simulator, .arch = "sm_90a"})(a, b);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
};

const std::string kMeet = "    sync cluster\n";

TEST(ClusterCopies, ABlockSendsToAnother) {
  for (const char* from : {"s", "f"})
    for (const char* type : {"float32", "float16"})
      for (const bool told : {true, false}) {
        Sent sent{.from = from, .type = type};
        if (!told) sent.completion = "", sent.tell = kMeet;
        SCOPED_TRACE(sent.text());
        std::mt19937 random(1);
        const std::vector<NDArray> arrays = arrays_of(ir::parse(sent.text(), "sent.tile"), random);
        const NDArray interpreted = NDArray::zeros({128, 64}, sent.type == "float32" ? f32 : f16);
        compile(sent.program(), {.engine = Engine::Interpreter})(arrays[0], interpreted);
        compile(sent.program(), {.engine = Engine::Simulator, .arch = "sm_90a"})(arrays[0], arrays[1]);
        for (int64_t i = 0; i < 128; ++i)
          for (int64_t j = 0; j < 64; ++j) {
            const double want = arrays[0].get_float({(i + 96) % 128, j});
            ASSERT_NEAR(interpreted.get_float({i, j}), want, sent.type == "float32" ? 0 : 1e-2 * std::abs(want));
            ASSERT_EQ(arrays[1].get_float({i, j}), interpreted.get_float({i, j}));
          }
      }
}

TEST(ClusterCopies, SendsAreWrittenInCppToo) {
  for (const bool told : {true, false}) {
    const Tensor A("A", {128}, f32), B("B", {128}, f32);
    const Program program = prim_func("swapped", {A, B}, [&] {
      for (auto bx : Kernel(2, {.threads = 64, .cluster_dims = {2}})) {
        auto s = alloc_shared({64}, f32), d = alloc_shared({64}, f32);
        auto full = alloc_barrier({1});
        copy(A(bx * 64), s);
        cluster_sync();
        if (told) {
          copy_cluster(s, d, 1 - bx, full(0));
          barrier_wait(full(0), 0);
        } else {
          copy_cluster(s, d, 1 - bx);
          cluster_sync();
        }
        copy(d, B(bx * 64));
      }
    });
    const NDArray a = NDArray::zeros({128}, f32);
    for (int64_t i = 0; i < 128; ++i) a.set_float({i}, static_cast<double>(i));
    for (const Engine engine : {Engine::Interpreter, Engine::Simulator}) {
      const NDArray b = NDArray::zeros({128}, f32);
      compile(program, {.engine = engine, .arch = "sm_90a"})(a, b);
      for (int64_t i = 0; i < 128; ++i) ASSERT_EQ(b.get_float({i}), static_cast<double>((i + 64) % 128));
    }
  }
}

// What another block writes, and nothing orders.
TEST(ClusterCopies, SendsAreOrdered) {
  EXPECT_EQ(Sent{}.error(), "");
  const std::string early = Sent{.prepare = ""}.error(), unread = Sent{.completion = "", .tell = ""}.error();
  EXPECT_NE(early.find("TW9001"), std::string::npos) << early;
  EXPECT_NE(early.find("of the cluster"), std::string::npos) << early;
  EXPECT_NE(unread.find("TW9001"), std::string::npos) << unread;
  Sent gone{.completion = "", .tell = ""};
  const std::string text = "    copy from=d to=B[bx * 32 : 32, 0 : 64]\n";
  // Nobody reads it: a block may have ended before it comes.
  std::string program = gone.text();
  program.erase(program.find(text), text.size());
  const auto tiles = std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(program, "p.tile")});
  try {
    compile(Program(tiles), {.engine = Engine::Simulator, .arch = "sm_90a"})(NDArray::zeros({128, 64}, f32),
                                                                             NDArray::zeros({128, 64}, f32));
    FAIL() << "a block that ends early is not found";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("TW9012"), std::string::npos) << e.what();
  }
}

TEST(ClusterCopies, WhatIsSentAndMultipliedLiesAsProductsReadIt) {
  const std::string text = R"(program p {
  param A: float16[64, 64]
  param B: float16[64, 64]
  param C: float32[2, 64, 64]
  launch p(bx: 2) threads(tx: 128) cluster(2) {
    shared a: float16[64, 64]
    shared b: float16[64, 64]
    shared d: float16[64, 64]
    shared there: float16[64, 64] view=d cta=1 - bx
    barrier full: uint64[1] arrive=[1]
    fragment acc: float32[64, 64]
    copy from=A to=a
    copy from=B to=b
    sync cluster
    copy from=b to=there completion=(barrier=full[0])
    wait barrier=full[0] parity=0
    gemm a=a b=d c=acc clear=true
    copy from=acc to=C[bx, 0 : 64, 0 : 64]
  }
}
)";
  std::mt19937 random(1);
  const ir::TileProgram tiles = ir::parse(text, "p.tile");
  const std::vector<NDArray> arrays = arrays_of(tiles, random);
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  const NDArray want = NDArray::zeros({2, 64, 64}, f32);
  compile(program, {.engine = Engine::Interpreter})(arrays[0], arrays[1], want);
  compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(arrays[0], arrays[1], arrays[2]);
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < 64; ++j)
      ASSERT_NEAR(arrays[2].get_float({1, i, j}), want.get_float({1, i, j}),
                  1e-3 * (1 + std::abs(want.get_float({1, i, j}))));
}

// Each block tells all of its cluster a few numbers, in turns of which each has a barrier of its own.
struct Told {
  int64_t blocks = 2, numbers = 3;
  std::string type = "float32", again = "", beside = "", behind = "";
  std::string text() const {
    const std::string n = std::to_string(numbers), p = std::to_string(blocks), row = "[" + n + "]";
    std::string views, sends;
    for (int64_t b = 0; b < blocks; ++b) {
      const std::string there = "there" + std::to_string(b);
      views +=
          "    shared " + there + ": " + type + "[2, " + p + ", " + n + "] view=all cta=" + std::to_string(b) + "\n";
      sends += "      copy from=mine to=" + there + "[t : 1, bx % " + p + " : 1, 0 : " + n +
               "] completion=(barrier=told[t])\n";
    }
    return "program told {\n  param A: " + type + "[2, 8, " + n + "]\n  param B: " + type + "[2, 8, " + p + ", " + n +
           "]\n  launch told(bx: 8) threads(tx: 128) cluster(" + p + ") {\n    shared mine: " + type + row +
           "\n    shared all: " + type + "[2, " + p + ", " + n + "]\n    fragment f: " + type + row + "\n" + views +
           "    barrier told: uint64[2] arrive=[" + p + ", " + p + "]\n    sync cluster\n    for t in 0..2 {\n" +
           "      copy from=A[t : 1, bx : 1, 0 : " + n + "] to=f\n      copy from=f to=mine\n" + sends + again +
           "      wait barrier=told[t] parity=0\n      copy from=all[t : 1, 0 : " + p + ", 0 : " + n +
           "] to=B[t : 1, bx : 1, 0 : " + p + ", 0 : " + n + "]\n" + beside + "    }\n" + behind + "  }\n}\n";
  }
  bool by_stores() const {
    Dump dump("told");
    const CudaText source = write_cuda(passes::canonicalize(ir::parse(text(), "told.tile")), "sm_90a", dump);
    const auto has = [&](const char* what) { return source.kernel.text.find(what) != std::string::npos; };
    EXPECT_NE(has("tw_store_to_peer("), has("tw_arrive_behind_fence("));
    EXPECT_EQ(has("tw_store_to_peer("), has("tw_arrive_expect_at("));
    EXPECT_NE(has("tw_store_to_peer("), has("tw_wait_written("));
    return has("tw_store_to_peer(");
  }
};

TEST(ClusterCopies, SmallOnesAreStoresThatTellTheirBytes) {
  for (const auto& [type, blocks, numbers] :
       {std::tuple("float32", 2, 3), {"int64", 4, 2}, {"float32", 8, 16}, {"uint32", 2, 128}, {"float32", 4, 1}}) {
    const Told told{.blocks = blocks, .numbers = numbers, .type = type};
    SCOPED_TRACE(told.text());
    EXPECT_TRUE(told.by_stores());
    std::mt19937 random(1);
    const ir::TileProgram tiles = ir::parse(told.text(), "told.tile");
    const std::vector<NDArray> arrays = arrays_of(tiles, random);
    const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
    for (const Engine engine : {Engine::Interpreter, Engine::Simulator}) {
      compile(program, {.engine = engine, .arch = "sm_90a"})(arrays[0], arrays[1]);
      for (int64_t t = 0; t < 2; ++t)
        for (int64_t b = 0; b < 8; ++b)
          for (int64_t p = 0; p < blocks; ++p)
            for (int64_t i = 0; i < numbers; ++i)
              ASSERT_EQ(arrays[1].get_float({t, b, p, i}), arrays[0].get_float({t, b / blocks * blocks + p, i}));
    }
  }
}

// What else the waiting block could read would not be ordered by the bytes.
TEST(ClusterCopies, OthersAreToldOfByAFenceForAllMemory) {
  EXPECT_FALSE((Told{.numbers = 129}.by_stores()));
  EXPECT_FALSE((Told{.type = "float16"}.by_stores()));
  EXPECT_FALSE((Told{.again = "      copy from=mine to=there0[t : 1, bx % 2 : 1, 0 : 3] completion=(barrier=told[t])\n"}
                    .by_stores()));
  EXPECT_FALSE((Told{.beside = "      copy from=mine to=A[t : 1, bx : 1, 0 : 3]\n"}.by_stores()));
  EXPECT_FALSE((Told{.behind = "    sync cluster\n    copy from=mine to=there0[0 : 1, bx % 2 : 1, 0 : 3]\n"
                               "    sync cluster\n"}
                    .by_stores()));
}

// Block 1 says by a number that it has read a row, and block 0 writes the next there.
TEST(ClusterCopies, WhatIsWrittenAgainWaitsForItsReaders) {
  const std::string text = R"(program rows {
  param A: float32[4, 128]
  param B: float32[4, 128]
  launch rows(bx: 2) threads(tx: 128) cluster(2) {
    shared row: float32[128]
    shared there: float32[128]
    shared one: float32[1]
    shared done: float32[1]
    shared there_1: float32[128] view=there cta=1
    shared done_0: float32[1] view=done cta=0
    barrier full: uint64[1] arrive=[1]
    barrier free: uint64[1] arrive=[1]
    fill to=one value=1.0
    for k in 0..4 {
      if bx == 0 {
        copy from=A[k, 0 : 128] to=row
        if 0 < k {
          wait barrier=free[0] parity=(k - 1) % 2
        }
        copy from=row to=there_1 completion=(barrier=full[0])
      } else {
        wait barrier=full[0] parity=k % 2
        copy from=there to=B[k, 0 : 128]
        if k < 3 {
          copy from=one to=done_0 completion=(barrier=free[0])
        }
      }
    }
    sync cluster
  }
}
)";
  std::mt19937 random(1);
  const ir::TileProgram tiles = ir::parse(text, "rows.tile");
  const std::vector<NDArray> arrays = arrays_of(tiles, random);
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{tiles}));
  compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(arrays[0], arrays[1]);
  for (int64_t k = 0; k < 4; ++k)
    for (int64_t i = 0; i < 128; ++i) ASSERT_EQ(arrays[1].get_float({k, i}), arrays[0].get_float({k, i}));
}

TEST(ClusterCopies, TheTextCompiles) {
  Dump dump("clusters");
  for (const std::string& text :
       {Sent{}.text(), Told{}.text(), Told{.type = "int64"}.text(), Sent{.from = "f", .type = "float16"}.text(),
        summed("4", 3), summed("2", 3, " swizzle(2, column)"),
        exchanged("    sync cluster arrive_only=true\n    sync cluster wait_only=true\n")}) {
    const CudaText source = write_cuda(passes::canonicalize(ir::parse(text, "p.tile")), "sm_90a", dump);
    const auto has = [&](const char* what) { return source.kernel.text.find(what) != std::string::npos; };
    const bool stores = has("tw_store_to_peer("), sends = !stores && text.find("view=") != std::string::npos;
    EXPECT_EQ(stores, text.find("told: uint64") != std::string::npos);
    EXPECT_EQ(has(".multicast::cluster"), !sends && !stores);
    EXPECT_EQ(has("tw_arrive_at("), !sends && !stores && text.find("cta=") != std::string::npos);
    // What is written to another block is released to the cluster, and acquired from it.
    for (const char* word : {"tw_map_shared(", "tw_arrive_written(", "tw_wait_written("}) EXPECT_EQ(has(word), sends);
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
