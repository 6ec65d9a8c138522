// A warp of its own that stores what loops leave in their turns: the same meaning, in the simulator too, whatever the
// stores have in common; where a plan that is handed in says so, and where the price does.
#include "ir/rewrite.h"
#include "passes/handed_in.h"
#include "plan/schedule.h"

namespace tilewright {
namespace {

// Three blocks of columns, each of which multiplies its tile of B by five of A, and leaves every product.
struct Case {
  std::string what = "C[k * 64 : 64, bx * 64 : 64]", more = {};
  std::string turns = "5", work = "one_tile", places = "1", lines = {};
  bool in_a_branch = false;
  std::string unplanned() const {
    const std::string leave = fmt::format("copy from=acc to={}{}", what, more);
    return fmt::format(
        "program p {{\n  param A: float16[320, 64]\n  param B: float16[192, 64]\n  param C: float32[320, 192]\n"
        "  launch product(bx: 3) threads(tx: 128) {{\n"
        "    shared As: float16[64, 64]\n    shared Bs: float16[64, 64]\n    fragment acc: float32[64, 64]\n"
        "    copy from=B[bx * 64 : 64, 0 : 64] to=Bs\n"
        "    for k in 0..{} pipelined(stages=2) {{\n      copy from=A[k * 64 : 64, 0 : 64] to=As\n"
        "      gemm a=As b=Bs c=acc transpose_b=true clear=true\n      {}\n    }}\n  }}\n}}\n",
        turns, in_a_branch ? "if k % 3 != bx {\n        " + leave + "\n      }" : leave);
  }
  std::string text() const {
    return replaced(unplanned(), "threads(tx: 128)",
                    fmt::format("threads(tx: 128) plan(\"work {} store_places={}\"{})", work, places, lines));
  }
};

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* places : {"1", "2", "3"})
    for (const char* work : {"one_tile", "persistent blocks=2"}) {
      out.push_back({.work = work, .places = places});
      out.push_back({.what = "C[k * 64 : 64, 0 : 64]", .more = " combine=add", .work = work, .places = places});
      out.push_back({.what = "C[k // 2 * 64 : 64, bx * 64 : 64]", .work = work, .places = places});  // written in order
      out.push_back({.turns = "bx + 2", .work = work, .places = places, .in_a_branch = true});
    }
  out.push_back({.lines = ", \"epilogue chunks\""});
  return out;
}

TEST(StoreRole, AWarpStoresWhatTurnsLeave) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const Planned p = planned(c.text());
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    ASSERT_TRUE(p.plan.work.has(plan::kStoreRole));
    int64_t stores = 0, of_one_warp = 0;
    ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
      const auto is_store = [](const ir::Stmt& x) {
        return x.as<ir::Commit>() && x.as<ir::Commit>()->queue == ir::Queue::BulkStore;
      };
      stores += is_store(s);
      if (const auto* role = s.as<ir::Role>(); role && role->end - role->begin == kWarpThreads)
        ir::walk(role->body, [&](const ir::Stmt& x) { of_one_warp += is_store(x); });
    });
    EXPECT_GT(stores, 0);
    EXPECT_EQ(stores, of_one_warp);
    expect_same_meaning(p, {numbers({320, 64}, f16, 1), numbers({192, 64}, f16, 2)}, {320, 192}, f32);
  }
}

TEST(StoreRole, IsTheSimulatorsToo) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const Program program(
        std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(c.text(), "p.tile")}));
    const NDArray a = numbers({320, 64}, f16, 1), b = numbers({192, 64}, f16, 2);
    const NDArray want = NDArray::zeros({320, 192}, f32), got = NDArray::zeros({320, 192}, f32);
    compile(program, {.engine = Engine::Interpreter})(a, b, want);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(a, b, got);
    EXPECT_EQ(got.to_floats(), want.to_floats());
  }
}

TEST(StoreRole, ThePlanIsPrintedAndReadBack) {
  const Case c{.work = "persistent blocks=2", .places = "2"};
  const passes::ThreadLowering first = lowered(c.text());
  const std::string plan = print_plans(first);
  EXPECT_NE(plan.find("  work persistent blocks=2 store_places=2\n"), std::string::npos) << plan;
  const passes::ThreadLowering again = lowered(
      replaced(c.unplanned(), "threads(tx: 128)", fmt::format("threads(tx: 128) plan({})", lines_to_hand_in(first))));
  EXPECT_EQ(print_plans(again), plan);
}

// A turn's result leaves beside the next turn, so that it costs less; who wants another plan says so.
TEST(StoreRole, IsTakenWhereItPays) {
  const std::string text = Case{}.unplanned();
  EXPECT_NE(print_plans(lowered(text)).find("store_places=1"), std::string::npos);
  const std::string own = replaced(text, "threads(tx: 128)", "threads(tx: 128) plan(\"work one_tile\")");
  EXPECT_EQ(print_plans(lowered(own)).find("store_places"), std::string::npos);
  const std::string once =
      replaced(replaced(text, "      copy from=acc to=C[k * 64 : 64, bx * 64 : 64]\n    }\n", "    }\n"),
               "    }\n  }\n}", "    }\n    copy from=acc to=C[0 : 64, bx * 64 : 64]\n  }\n}");
  EXPECT_EQ(print_plans(lowered(once)).find("store_places"), std::string::npos);
}

TEST(StoreRole, IsRefusedWhereItCannotBe) {
  const std::string text = Case{}.text(),
                    none = "launch 'product' has no plan with the line 'work one_tile store_places=1'\n";
  EXPECT_EQ(refusal(text), "");
  const std::string once =
      replaced(replaced(text, "      copy from=acc to=C[k * 64 : 64, bx * 64 : 64]\n    }\n", "    }\n"),
               "    }\n  }\n}", "    }\n    copy from=acc to=C[0 : 64, bx * 64 : 64]\n  }\n}");
  EXPECT_EQ(refusal(once), none + "no loop leaves a tile in its turns that TMA may store");
  EXPECT_EQ(refusal(Case{.lines = ", \"epilogue as_written\""}.text()),
            none + "no loop leaves a tile by TMA in its turns");
  // Where the last turn's tile goes once more is in nobody's order.
  EXPECT_EQ(refusal(replaced(text, "    }\n  }\n}", "    }\n    copy from=acc to=C[0 : 64, bx * 64 : 64]\n  }\n}")),
            none + "'C' is touched elsewhere, too");
}

}  // namespace
}  // namespace tilewright
