// The product of a turn beside what is made of the one before: two accumulators, where a plan that is handed in says
// so.
#include "ir/rewrite.h"
#include "passes/lower_to_threads.h"
#include "passes/planned.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

struct Scaled {
  std::string k = "K";  // columns of A: a number, or a symbol
  int64_t rows = 64;    // of a tile
  int stages = 3;
  std::string plan = "plan(\"order alternating of k\") ";
  std::string behind = "";  // statements behind the loop

  // Sums of products of blocks of 32 columns, each with a scale of its row and one of its block.
  std::string text() const {
    const bool is_symbol = k == "K";
    const std::string columns = is_symbol ? "K * 32" : k, blocks = is_symbol ? "K" : "(" + k + " // 32)";
    return fmt::format(
        "program scaled {{\n{0}  param A: float16[130, {1}]\n  param B: float16[128, {1}]\n"
        "  param S: float32[{2}, 132]\n  param R: float32[{2}]\n  param C: float32[130, 128]\n"
        "  launch scaled(bx: 2, by: {3}) threads(tx: 128) {5}{{\n    shared As: float16[{4}, 32]\n"
        "    shared Bs: float16[64, 32]\n    shared Ss: float32[{4}]\n    fragment scales: float32[{4}]\n"
        "    fragment inner: float32[{4}, 64]\n    fragment acc: float32[{4}, 64]\n"
        "    fill to=acc value=0.0\n    for k in 0..{2} pipelined(stages={6}) {{\n"
        "      copy from=A[by * {4} : {4}, k * 32 : 32] to=As\n      copy from=B[bx * 64 : 64, k * 32 : 32] to=Bs\n"
        "      copy from=S[k, by * {4} : {4}] to=Ss\n      copy from=Ss to=scales\n      of_block: float32 = R[k]\n"
        "      gemm a=As b=Bs c=inner transpose_b=true clear=true\n      map i in {4}, j in 64 {{\n"
        "        acc[i, j] = acc[i, j] + inner[i, j] * (scales[i] * of_block)\n      }}\n    }}\n{7}"
        "    copy from=acc to=C[by * {4} : {4}, bx * 64 : 64]\n  }}\n}}\n",
        is_symbol ? "  symbol K: int32\n" : "", columns, blocks, (130 + rows - 1) / rows, rows, plan, stages, behind);
  }
};

std::vector<NDArray> arguments_of(int64_t k) {
  return {numbers({130, k}, f16, 1), numbers({128, k}, f16, 2), numbers({k / 32, 132}, f32, 3),
          numbers({k / 32}, f32, 4)};
}

int products_in_flight(const Planned& p) {
  int found = 0;
  ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
    const auto* g = s.as<ir::Gemm>();
    found += g && g->completion.queue == ir::Queue::Wgmma;
  });
  return found;
}

TEST(Alternating, ProductsRunBesideWhatIsMadeOfTheOneBefore) {
  for (const int64_t k : {32, 96, 128, 160, 256}) {
    const Planned p = planned(Scaled{.k = std::to_string(k)}.text());
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    ASSERT_EQ(p.plan.orders.size(), 1u);
    EXPECT_EQ(p.plan.orders[0].how, plan::Order::How::Alternating);
    // Four turns at a time, and those that are left.
    EXPECT_EQ(products_in_flight(p), (k >= 128 ? 4 : 0) + (k % 128 != 0 ? 1 : 0));
    expect_same_meaning(p, arguments_of(k), {130, 128}, f32);
  }
}

TEST(Alternating, TurnsNeedNotBeKnown) {
  Scaled s;
  std::string text = s.text();
  const Planned p = planned(text);
  ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
  EXPECT_EQ(products_in_flight(p), 5);
  for (const int64_t k : {1, 3, 4, 6, 8}) expect_same_meaning(p, arguments_of(k * 32), {130, 128}, f32, {{"K", k}});
}

TEST(Alternating, IsTheSimulatorsToo) {
  for (const int64_t k : {32, 128, 224}) {
    const Program program(std::make_shared<const ir::TileProgramBox>(
        ir::TileProgramBox{ir::parse(Scaled{.k = std::to_string(k)}.text(), "p.tile")}));
    std::vector<NDArray> want = arguments_of(k), got = want;
    want.push_back(NDArray::zeros({130, 128}, f32)), got.push_back(NDArray::zeros({130, 128}, f32));
    compile(program, {.engine = Engine::Interpreter})(want[0], want[1], want[2], want[3], want[4]);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(got[0], got[1], got[2], got[3], got[4]);
    EXPECT_EQ(got[4].to_floats(), want[4].to_floats()) << k;
  }
}

// An operand that comes once for a tile of the grid, by a ring of its own.
TEST(Alternating, OperandsMayComeOnce) {
  std::string text = Scaled{.k = "256"}.text();
  const auto replace = [&](const std::string& what, const std::string& by) {
    text.replace(text.find(what), what.size(), by);
  };
  replace("      copy from=A[by * 64 : 64, k * 32 : 32] to=As\n", "");
  replace("    fill to=acc value=0.0\n", "    copy from=A[by * 64 : 64, 0 : 32] to=As\n    fill to=acc value=0.0\n");
  const Planned p = planned(text);
  ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
  ASSERT_EQ(p.plan.orders.size(), 1u);
  EXPECT_EQ(p.plan.orders[0].how, plan::Order::How::Alternating);
  EXPECT_EQ(p.plan.rings.size(), 2u);
  expect_same_meaning(p, arguments_of(256), {130, 128}, f32);
}

std::string refusal(const Scaled& s) {
  try {
    passes::lower_to_threads(passes::canonicalize(ir::parse(s.text(), "p.tile")), target::GpuTarget::of(90));
  } catch (const CompileError& e) {
    return e.diagnostic().message;
  }
  return "";
}

TEST(Alternating, IsRefusedWhereItCannotBe) {
  const std::string none = "launch 'scaled' has no plan with the line 'order alternating of k'";
  EXPECT_EQ(refusal({.k = "256"}), "");
  // The tile is read behind the loop.
  EXPECT_EQ(
      refusal({.k = "256", .behind = "    map i in 64, j in 64 {\n      acc[i, j] = acc[i, j] + inner[i, j]\n    }\n"}),
      none);
  // Two of it are more registers than there are.
  EXPECT_EQ(refusal({.k = "256", .rows = 192}), none);
  // A turn's slot is in use while the next one's comes.
  EXPECT_EQ(refusal({.k = "256", .plan = "plan(\"order alternating of k\", \"ring As slots=2\") "}), none);
  EXPECT_EQ(refusal({.k = "256", .plan = "plan(\"order alternating of q\") "}),
            "launch 'scaled' has no plan with the line 'order alternating of q'");
}

}  // namespace
}  // namespace tilewright
