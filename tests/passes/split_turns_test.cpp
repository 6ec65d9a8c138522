// Blocks of a cluster that share the turns of a loop of products: where a plan that is handed in says so, or few tiles
// take many turns.
#include "ir/rewrite.h"
#include "passes/handed_in.h"
#include "plan/schedule.h"

namespace tilewright {
namespace {

using simulator::Product;
using simulator::with_plan;

constexpr Product kProduct = simulator::product_of_five_turns(128, 128);

std::string split_text(const Product& p, int64_t parts) {
  return with_plan(p.text(), fmt::format("\"work split k={}\"", parts));
}

struct Case {
  Product product;
  int64_t parts;
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const int64_t parts : {2, 4}) {  // of five turns and of eight
    for (const char* type : {"float16", "bfloat16", "float8_e4m3", "int8"}) {
      Product p = kProduct;
      p.type = type, p.result = std::string_view(type) == "int8" ? "int32" : "float32";
      out.push_back({p, parts});
    }
    Product nn = kProduct;
    nn.transpose_b = false, nn.k = 512, nn.relu = false, nn.result = "float16";
    out.push_back({nn, parts});
    nn.threads = 256, nn.block_m = 128, nn.through_shared = true;
    out.push_back({nn, parts});
  }
  return out;
}

TEST(SplitTurns, BlocksShareTheTurns) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(split_text(c.product, c.parts));
    const Planned p = planned(split_text(c.product, c.parts));
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    const plan::Use* use = p.plan.work.find(plan::kSplit);
    ASSERT_NE(use, nullptr);
    EXPECT_EQ(use->number, c.parts);
    const ir::Launch& launch = p.program.launches[0];
    EXPECT_EQ(launch.cluster, (std::vector<int64_t>{1, 1, c.parts}));
    expect_same_meaning(p, arguments_of(c.product), {c.product.m, c.product.n},
                        ir::parse(c.product.text(), "p.tile").buffers[2].type);
  }
}

TEST(SplitTurns, IsTheSimulatorsToo) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(split_text(c.product, c.parts));
    const Program program(std::make_shared<const ir::TileProgramBox>(
        ir::TileProgramBox{ir::parse(split_text(c.product, c.parts), "p.tile")}));
    const std::vector<NDArray> in = arguments_of(c.product);
    const DType type = program.box().program.buffers[2].type;
    const NDArray want = NDArray::zeros({c.product.m, c.product.n}, type),
                  got = NDArray::zeros({c.product.m, c.product.n}, type);
    compile(program, {.engine = Engine::Interpreter})(in[0], in[1], want);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(in[0], in[1], got);
    EXPECT_EQ(got.to_floats(), want.to_floats());
  }
}

// 147,456 bytes of sums lie where the rings were: they do not fit beside two slots.
TEST(SplitTurns, SumsMayLieOverTheRings) {
  Product p = kProduct;
  p.m = p.n = p.block_m = p.block_n = 192, p.k = 512, p.threads = 384, p.result = "float16";
  const passes::ThreadLowering l = lowered(split_text(p, 2));
  ASSERT_TRUE(l.plans[0].work.has(plan::kSplit));
  ASSERT_EQ(l.plans[0].rings.size(), 1u);
  EXPECT_GT(l.plans[0].rings[0].slots * l.plans[0].rings[0].bytes + 192 * 192 * 4,
            target::GpuTarget::of(90).shared_bytes);
}

TEST(SplitTurns, ThePlanIsPrintedAndReadBack) {
  const passes::ThreadLowering first = lowered(split_text(kProduct, 2));
  const std::string plan = print_plans(first);
  EXPECT_NE(plan.find("  work split k=2\n"), std::string::npos) << plan;
  const passes::ThreadLowering again = lowered(with_plan(kProduct.text(), lines_to_hand_in(first)));
  EXPECT_EQ(print_plans(again), plan);
}

TEST(SplitTurns, IsRefusedWhereItCannotBe) {
  const std::string text = split_text(kProduct, 4),
                    none = "launch 'product' has no plan with the line 'work split k=4'\n";
  EXPECT_EQ(refusal(text), "");
  Product few = kProduct;
  few.k = 192;
  EXPECT_EQ(refusal(split_text(few, 4)), none + "'k' has 3 turns for 4 blocks");
  EXPECT_EQ(refusal(replaced(text, "    fill to=acc value=0.0\n", "    fill to=acc value=1.0\n")),
            none + "'acc' is not cleared before the loop");
  EXPECT_EQ(refusal(replaced(text, "threads(tx: 128)", "threads(tx: 128) cluster(2)")), "")
      << "a cluster that nothing uses is a matter of speed";
  EXPECT_EQ(refusal(replaced(text, "bx: 2, by: 2", "bx: 2, by: 2, bz: 1")),
            none + "its grid has three dimensions already");
  EXPECT_EQ(refusal(replaced(text, "      gemm a=As", "      copy from=As to=C[0 : 64, 0 : 64]\n      gemm a=As")),
            none + "'C' is written before the loop is over, and every block would");
  EXPECT_EQ(
      refusal(replaced(text, "      gemm a=As",
                       "      map i in 64, j in 64 {\n        acc[i, j] = acc[i, j] * 0.5\n      }\n      gemm a=As")),
      none + "'acc' is used in the loop by more than what adds to it");
}

// Of tiles that leave half of the multiprocessors idle and take many turns, where nobody says.
TEST(SplitTurns, FewTilesShareLongLoops) {
  const auto parts = [](int64_t m, int64_t k, const std::string& line = "") {
    Product p = kProduct;
    p.m = m, p.k = k;
    const std::string text = line.empty() ? p.text() : with_plan(p.text(), "\"" + line + "\"");
    const passes::ThreadLowering l =
        passes::lower_to_threads(passes::canonicalize(ir::parse(text, "p.tile")), target::GpuTarget::of(90));
    EXPECT_TRUE(l.plans[0].has_loader());
    const plan::Use* use = l.plans[0].work.find(plan::kSplit);
    return use ? use->number : 1;
  };
  EXPECT_EQ(parts(128, 6400), 4);   // 4 tiles of 100 turns
  EXPECT_EQ(parts(128, 3200), 3);   // of 50: four would have too little each
  EXPECT_EQ(parts(1024, 1920), 2);  // 32 tiles of 30
  EXPECT_EQ(parts(1024, 1856), 1);  // of 29: handing over takes as long
  EXPECT_EQ(parts(128, 1408), 1);   // 4 tiles of 22
  EXPECT_EQ(parts(1024, 6400), 2);  // 32 tiles: clusters of more do not all find room
  EXPECT_EQ(parts(4096, 6400), 1);  // 128
  EXPECT_EQ(parts(128, 6400, "work one_tile"), 1);
  EXPECT_EQ(parts(128, 6400, "work split k=2"), 2);
}

}  // namespace
}  // namespace tilewright
