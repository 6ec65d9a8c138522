// Sums that leave in turns of products: warps bring away what they hold, and wait for nobody.
#include "ir/parse.h"
#include "ir/rewrite.h"
#include "passes/canonicalize.h"
#include "passes/lower_to_threads.h"
#include "passes/planned.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

// Gradients of attention, small: a product of two warpgroups' weights leaves in every turn.
std::string gradients(int64_t turns, const std::string& behind = "") {
  return fmt::format(
      "program gradients {{\n  param Q: float16[{0} * 64, 64]\n  param K: float16[256, 64]\n"
      "  param C: float32[256 + {0} * 64, 64]\n  launch gradients(bx: 2) threads(tx: 256) {{\n"
      "    shared Ks: float16[128, 64]\n    shared Qs: float16[64, 64]\n    shared Ps: float16[128, 64]\n"
      "    fragment S: float32[128, 64]\n    fragment P: float16[128, 64]\n    fragment dQ: float32[64, 64]\n"
      "    fragment dK: float32[128, 64]\n    copy from=K[bx * 128 : 128, 0 : 64] to=Ks\n"
      "    fill to=dK value=0.0\n    for q in 0..{0} pipelined(stages=2) {{\n"
      "      copy from=Q[q * 64 : 64, 0 : 64] to=Qs\n"
      "      gemm a=Ks b=Qs c=S transpose_b=true clear=true policy=full_row\n"
      "      map i in 128, j in 64 {{\n        S[i, j] = min(max(S[i, j] * 0.0625, -8.0), 8.0)\n      }}\n"
      "      copy from=S to=P\n      copy from=P to=Ps\n"
      "      gemm a=Ps b=Ks c=dQ transpose_a=true clear=true\n      gemm a=P b=Qs c=dK policy=full_row\n"
      "      copy from=dQ to=C[256 + q * 64 : 64, 0 : 64] combine=add\n{1}    }}\n"
      "    copy from=dK to=C[bx * 128 : 128, 0 : 64] combine=add\n  }}\n}}\n",
      turns, behind);
}

// Named barriers in a turn of the loop of products, and bulk copies that each warp elects a thread for.
std::pair<int, int> meetings_and_copies(const std::string& text) {
  const auto lowered =
      passes::lower_to_threads(passes::canonicalize(ir::parse(text, "p.tile")), target::GpuTarget::of(90));
  std::pair<int, int> out{0, 0};
  ir::walk(lowered.threads.launches[0].body, [&](const ir::Stmt& s) {
    const auto* loop = s.as<ir::For>();
    if (!loop || std::ranges::none_of(loop->body, [](const ir::Stmt& x) { return x.as<ir::Commit>() != nullptr; }))
      return;
    for (const ir::Stmt& x : loop->body) {
      out.first += x.as<ir::Sync>() && x.as<ir::Sync>()->scope == ir::SyncScope::Named;
      if (x.as<ir::Elect>())
        for (const ir::Stmt& y : x.as<ir::Elect>()->body) out.second += y.as<ir::Copy>() != nullptr;
    }
  });
  return out;
}

// Both warpgroups meet before they overwrite what they multiply, and before they multiply it.
TEST(WarpBoxes, WaitForNobody) { EXPECT_EQ(meetings_and_copies(gradients(4)), std::pair(2, 1)); }

TEST(WarpBoxes, AreTheSimulatorsToo) {
  for (const int64_t turns : {1, 5}) {
    const Program program(
        std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(gradients(turns), "p.tile")}));
    std::vector<NDArray> want{numbers({turns * 64, 64}, f16, 1), numbers({256, 64}, f16, 2)}, got = want;
    want.push_back(NDArray::zeros({256 + turns * 64, 64}, f32));
    got.push_back(NDArray::zeros({256 + turns * 64, 64}, f32));
    compile(program, {.engine = Engine::Interpreter})(want[0], want[1], want[2]);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(got[0], got[1], got[2]);
    EXPECT_EQ(got[2].to_floats(), want[2].to_floats()) << turns;
  }
}

}  // namespace
}  // namespace tilewright
