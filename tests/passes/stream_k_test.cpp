// Blocks that take equal runs of turns over the tiles of a product, where a plan that is handed in says so.
#include "ir/rewrite.h"
#include "passes/handed_in.h"
#include "plan/schedule.h"

namespace tilewright {
namespace {

using simulator::Product;
using simulator::with_plan;

constexpr Product kProduct = simulator::product_of_five_turns(128, 128);

std::string streamed_text(const Product& p, int64_t blocks) {
  return with_plan(p.text(), fmt::format("\"work stream_k blocks={}\"", blocks));
}

// 132 multiprocessors: a block has a run of turns, whatever the tiles.
Planned planned_on_132(const std::string& text) {
  Planned out;
  out.plain = out.program = passes::canonicalize(ir::parse(text, "p.tile"));
  out.plan = passes::decide_plan(out.program, 0, target::GpuTarget::of(90), {});
  passes::apply_plan(out.plan, out.program, 0);
  ir::check_valid(out.program, "apply_plan");
  return out;
}

// Planned or plain, on the interpreter.
std::vector<double> result_of(const ir::TileProgram& program, const Product& p, Engine engine) {
  std::vector<NDArray> in = arguments_of(p);
  const NDArray out = NDArray::zeros({p.m, p.n}, program.buffer(program.params[2].buffer).type);
  const Program boxed(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{program}));
  compile(boxed, {.engine = engine, .arch = engine == Engine::Simulator ? "sm_90a" : ""})(in[0], in[1], out);
  return out.to_floats();
}

struct Case {
  Product product;
  int64_t blocks;
};

// 4 tiles of five turns by 1 block, 3 (a whole wave would be 3 tiles: all are streamed), 4 (whole tiles), 7, 20 (a turn
// each) and 23 (some have none); by 2: a whole tile each, and then two more.
std::vector<Case> cases() {
  std::vector<Case> out;
  for (const int64_t blocks : {1, 2, 3, 4, 7, 20, 23}) out.push_back({kProduct, blocks});
  for (const char* type : {"float16", "float8_e4m3", "int8"}) {
    Product p = kProduct;
    p.type = type, p.result = std::string_view(type) == "int8" ? "int32" : "float32";
    out.push_back({p, 3});
  }
  Product nn = kProduct;
  nn.transpose_b = false, nn.k = 512, nn.relu = false, nn.result = "float16";
  out.push_back({nn, 3});
  nn.threads = 256, nn.block_m = 128, nn.through_shared = true;
  out.push_back({nn, 3});
  return out;
}

TEST(StreamK, BlocksTakeRunsOfTurns) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(streamed_text(c.product, c.blocks));
    const Planned p = planned_on_132(streamed_text(c.product, c.blocks));
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    const plan::Use* use = p.plan.work.find(plan::kStreamK);
    ASSERT_NE(use, nullptr);
    EXPECT_EQ(use->number, c.blocks);
    EXPECT_EQ(result_of(p.program, c.product, Engine::Interpreter), result_of(p.plain, c.product, Engine::Interpreter));
  }
}

TEST(StreamK, IsTheSimulatorsToo) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(streamed_text(c.product, c.blocks));
    const ir::TileProgram program = ir::parse(streamed_text(c.product, c.blocks), "p.tile");
    EXPECT_EQ(result_of(program, c.product, Engine::Simulator), result_of(program, c.product, Engine::Interpreter));
  }
}

TEST(StreamK, ThePlanIsPrintedAndReadBack) {
  const passes::ThreadLowering first = lowered(with_plan(kProduct.text(), "\"work stream_k\""));
  const std::string plan = print_plans(first);
  EXPECT_NE(plan.find("  work stream_k blocks=132\n"), std::string::npos) << plan;
  EXPECT_EQ(print_plans(lowered(with_plan(kProduct.text(), lines_to_hand_in(first)))), plan);
}

TEST(StreamK, IsRefusedWhereItCannotBe) {
  const std::string text = streamed_text(kProduct, 3),
                    none = "launch 'product' has no plan with the line 'work stream_k blocks=3'\n";
  EXPECT_EQ(refusal(text), "");
  EXPECT_EQ(refusal(replaced(text, "bx: 2, by: 2", "bx: 2, by: 2, bz: 1")), "") << "a batch is one more dimension";
  EXPECT_EQ(refusal(replaced(text, "    fill to=acc value=0.0\n", "    fill to=acc value=1.0\n")),
            none + "'acc' is not cleared before the loop");
  EXPECT_EQ(refusal(replaced(text, "for k: int32 in 0..5", "for k: int32 in 0..bx + 4")),
            none + "how many turns 'k' has depends on the tile");
  EXPECT_EQ(refusal(replaced(text, "      gemm a=As", "      copy from=As to=C[0 : 64, 0 : 64]\n      gemm a=As")),
            none + "'C' is written before the loop is over, and every block would");
  EXPECT_EQ(refusal(streamed_text(kProduct, 133)),
            "launch 'product' has no plan with the line 'work stream_k blocks=133'\n"
            "133 blocks do not run at once on 132 multiprocessors");
}

}  // namespace
}  // namespace tilewright
