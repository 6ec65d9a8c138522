// Neighbouring blocks that each bring half of a tile for both, as a pair of a cluster: where a plan that is handed in
// says so.
#include "ir/cluster.h"
#include "ir/rewrite.h"
#include "passes/handed_in.h"
#include "plan/schedule.h"

namespace tilewright {
namespace {

using simulator::Product;
using simulator::with_plan;

// Three rows of tiles, four columns.
constexpr Product kProduct = simulator::product_of_five_turns(192, 256);

struct Case {
  Product product;
  std::string tile, work = "persistent blocks=4", more = {};
  std::string order = {};  // of the tiles
  bool symbols = false;    // rows and columns are a call's
  std::string text() const {
    std::string out = with_plan(product.text(), fmt::format("\"work {} pairs={}\"{}", work, tile, more));
    if (!order.empty()) out = replaced(out, " plan(", " swizzle(" + order + ") plan(");
    return symbols ? of_symbols(std::move(out)) : out;
  }

 private:
  std::string of_symbols(std::string text) const {
    const int64_t m = product.m, n = product.n, k = product.k;
    const auto tiles = [](const char* of, int64_t block) {
      return fmt::format("({} + {}) // {}", of, block - 1, block);
    };
    text = replaced(text, "  param A", "  symbol M: int32\n  symbol N: int32\n  param A");
    text = replaced(text, fmt::format("[{}, {}]", m, k), fmt::format("[M, {}]", k));
    text = replaced(text, fmt::format("[{}, {}]", n, k), fmt::format("[N, {}]", k));
    text = replaced(text, fmt::format("[{}, {}]", m, n), "[M, N]");
    text = replaced(text, fmt::format("bx: {}", tilewright::ceildiv(n, product.block_n)),
                    "bx: " + tiles("N", product.block_n));
    return replaced(text, fmt::format("by: {}", tilewright::ceildiv(m, product.block_m)),
                    "by: " + tiles("M", product.block_m));
  }
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* type : {"float16", "float8_e4m3"})
    for (const char* tile : {"As", "Bs"})  // pairs along a row of an even number of tiles, and along an odd column
      for (const char* work : {"persistent blocks=4", "one_tile"}) {
        Case c{kProduct, tile, work};
        c.product.type = type;
        out.push_back(c);
      }
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      Case c{kProduct, "Bs"};
      c.product.transpose_a = a, c.product.transpose_b = b, c.product.relu = false, c.product.result = "float16";
      c.product.threads = 256, c.product.block_m = 128, c.product.through_shared = a, c.product.n = 200;
      out.push_back(c);
    }
  // Tiles are numbered by pairs, whatever the order, of as many rows and columns as a call has: even numbers and odd.
  for (const char* tile : {"As", "Bs"})
    for (const char* order : {"2, row", "2, column", ""})
      for (const char* work : {"persistent blocks=4", "one_tile"})
        for (const int64_t n : {256, 320}) {
          Case c{kProduct, tile, work};
          c.product.n = n, c.order = order, c.symbols = true;
          out.push_back(c);
        }
  // The result lies over the rings.
  Case large{kProduct, "Bs", "one_tile", ", \"ring As slots=5\""};
  large.product.block_m = large.product.block_n = 128, large.product.threads = 256;
  out.push_back(large);
  // Teams in turn, of three pairs; all warps on each tile.
  out.push_back({kProduct, "Bs", "persistent blocks=2", ", \"role compute tiles_in_turn\""});
  out.push_back({kProduct, "As", "persistent blocks=2", ", \"role compute all_tiles\", \"ring As slots=2\""});
  out.push_back({kProduct, "As", "persistent blocks=4 reverse_odd_waves"});
  out.push_back({kProduct, "As", "one_tile blocks_per_multiprocessor=2"});
  return out;
}

TEST(PairBlocks, EachBringsHalfForBoth) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const Planned p = planned(c.text());
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    ASSERT_TRUE(p.plan.work.has(plan::kPairs));
    EXPECT_EQ(ir::cluster_blocks(p.program.launches[0]), 2);
    int64_t multicasts = 0;
    ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
      const auto* copy = s.as<ir::Copy>();
      multicasts += copy && copy->multicast == 3;
    });
    EXPECT_EQ(multicasts, 1);
    expect_same_meaning(p, arguments_of(c.product), {c.product.m, c.product.n},
                        ir::parse(c.product.text(), "p.tile").buffers[2].type,
                        {{"M", c.product.m}, {"N", c.product.n}});
  }
}

TEST(PairBlocks, IsTheSimulatorsToo) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const Program program(
        std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(c.text(), "p.tile")}));
    const std::vector<NDArray> in = arguments_of(c.product);
    const DType type = program.box().program.buffers[2].type;
    const NDArray want = NDArray::zeros({c.product.m, c.product.n}, type),
                  got = NDArray::zeros({c.product.m, c.product.n}, type);
    compile(program, {.engine = Engine::Interpreter})(in[0], in[1], want);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(in[0], in[1], got);
    EXPECT_EQ(got.to_floats(), want.to_floats());
  }
}

TEST(PairBlocks, ThePlanIsPrintedAndReadBack) {
  const passes::ThreadLowering first = lowered(Case{kProduct, "Bs", "persistent blocks=6"}.text());
  const std::string plan = print_plans(first);
  EXPECT_NE(plan.find("  work persistent blocks=6 pairs=Bs\n"), std::string::npos) << plan;
  const passes::ThreadLowering again = lowered(with_plan(kProduct.text(), lines_to_hand_in(first)));
  EXPECT_EQ(print_plans(again), plan);
}

TEST(PairBlocks, IsRefusedWhereItCannotBe) {
  const std::string text = Case{kProduct, "Bs", "one_tile"}.text(),
                    none = "launch 'product' has no plan with the line 'work one_tile pairs=Bs'\n";
  EXPECT_EQ(refusal(text), "");
  EXPECT_EQ(refusal(replaced(text, "pairs=Bs", "pairs=acc")),
            replaced(none, "Bs", "acc") + "no ring of a pipelined loop brings 'acc'");
  EXPECT_EQ(refusal(replaced(text, "by: 3", "by: 1")),
            none + "no two neighbouring blocks want the same 'Bs' in the same turns");
  EXPECT_EQ(refusal(replaced(text, "in 0..5 pipelined", "in 0..by + 1 pipelined")),
            none + "how many turns a loop has depends on the tile of the grid");
  EXPECT_EQ(refusal(Case{kProduct, "Bs", "persistent blocks=3"}.text()),
            "launch 'product' has no plan with the line 'work persistent blocks=3 pairs=Bs'\n3 blocks are no pairs");
  Product narrow = kProduct;
  narrow.block_n = 40, narrow.n = 80;
  EXPECT_EQ(refusal(Case{narrow, "Bs", "one_tile"}.text()), none + "'Bs' has 40 rows; halves have multiples of 8");
}

// A grid of a call's extents may end in part of a cluster, whatever order its blocks have: that is refused when it is
// called, where the hardware's own check sees another grid.
TEST(PairBlocks, ClustersOfAProgramAreWholeInACallToo) {
  const auto run = [](int64_t n, const char* order) {
    const std::string text = fmt::format(
        "program p {{\n  symbol n: int32\n  param A: float32[n, 64]\n  param C: float32[n, 64]\n"
        "  launch p(bx: 4, by: n) threads(tx: 32) cluster(1, 2){} {{\n    sync cluster\n    map i in 16 {{\n"
        "      C[by, bx * 16 + i] = A[by, bx * 16 + i] * 2.0\n    }}\n  }}\n}}\n",
        order);
    const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text, "p.tile")}));
    const NDArray a = numbers({n, 64}, f32, 1), c = NDArray::zeros({n, 64}, f32);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(a, c);
    std::vector<double> twice = a.to_floats();
    for (double& x : twice) x *= 2;
    EXPECT_EQ(c.to_floats(), twice);
  };
  for (const char* order : {"", " swizzle(4, row)", " swizzle(2, column)"}) {
    run(4, order), run(6, order);
    EXPECT_THROW(run(5, order), LaunchError) << order;
  }
}

}  // namespace
}  // namespace tilewright
