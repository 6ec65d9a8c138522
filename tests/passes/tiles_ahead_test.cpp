// Blocks that bring the next tile while they compute one, where a plan that is handed in says so.
#include "ir/rewrite.h"
#include "passes/lower_to_threads.h"
#include "passes/planned.h"
#include "passes/schedule/async_rings.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

struct Rows {
  std::string grid = "by: 7", row = "by", in = "X", out = "Y", plan = "plan(\"work persistent\") ";
  std::string bring = "    copy from={in}[{row}, 0 : 4096] to=x\n", scale = "";
  int threads = 1024, registers = 16;  // of a thread, besides: what keeps blocks from running beside each other

  // y = x - max(x), by rows; two rows of a fragment more than it needs.
  std::string text() const {
    std::string copy = bring;
    for (const auto& [what, by] : {std::pair{"{in}", in}, {"{row}", row}})
      if (const size_t at = copy.find(what); at != std::string::npos) copy.replace(at, std::strlen(what), by);
    return fmt::format(
        "program rows {{\n  param X: float16[7, 4096]\n  param Y: float16[7, 4096]\n"
        "  launch rows({0}) threads(tx: {1}) {2}{{\n    fragment x: float32[1, 4096]\n    fragment held: float32[{3}, "
        "{1}]\n"
        "    fragment most: float32[1]\n{4}{5}    map i in {3}, j in {1} {{\n      held[i, j] = x[0, j]\n    }}\n"
        "    reduce max from=x to=most dim=1\n    map i in 1, j in 4096 {{\n      x[i, j] = x[i, j] - most[i]\n    }}\n"
        "    map i in 1, j in {1} {{\n      x[i, j] = x[i, j] + held[{3} - 1, j] * 0.0\n    }}\n"
        "    copy from=x to={6}[{7}, 0 : 4096]\n  }}\n}}\n",
        grid, threads, plan, registers, copy, scale, out, row);
  }
};

int copies_ahead(const ir::TileProgram& p) {
  int found = 0;
  ir::walk(p.launches[0].body, [&](const ir::Stmt& s) {
    const auto* c = s.as<ir::Copy>();
    found += c && c->completion.queue == ir::Queue::CpAsync;
  });
  return found;
}

TEST(TilesAhead, TheNextTileComesWhileThisOneIsComputed) {
  for (const int slots : {2, 3}) {
    Planned p = planned(Rows{.plan = fmt::format("plan(\"work persistent\", \"ring x slots={}\") ", slots)}.text());
    ASSERT_TRUE(p.plan.brings_ahead()) << fmt::format("{}", fmt::join(lines_of(p.plan, p.program), "\n"));
    EXPECT_EQ(p.plan.rings[0].bytes, 4096 * 2);
    EXPECT_EQ(p.plan.rings[0].slots, slots);
    p.program = passes::materialize_async_rings(std::move(p.program)).program;
    EXPECT_EQ(copies_ahead(p.program), slots);  // before the loop, and in it
    expect_same_meaning(p, {numbers({7, 4096}, f16, 3)}, {7, 4096}, f16);
  }
}

TEST(TilesAhead, PlacesMayHaveNames) {
  Planned p = planned(Rows{.grid = "bx: 1, by: 7",
                           .row = "row",
                           .bring = "    row: int32 = by + bx\n    copy from={in}[{row}, 0 : 4096] to=x\n"}
                          .text());
  ASSERT_TRUE(p.plan.brings_ahead());
  p.program = passes::materialize_async_rings(std::move(p.program)).program;
  EXPECT_EQ(copies_ahead(p.program), 2);
  expect_same_meaning(p, {numbers({7, 4096}, f16, 3)}, {7, 4096}, f16);
}

TEST(TilesAhead, IsTheSimulatorsToo) {
  for (const char* plan :
       {"plan(\"work persistent blocks=2\") ", "plan(\"work persistent blocks=3\", \"ring x slots=3\") "}) {
    const Program program(
        std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(Rows{.plan = plan}.text(), "p.tile")}));
    const NDArray x = numbers({7, 4096}, f16, 5), want = NDArray::zeros({7, 4096}, f16),
                  got = NDArray::zeros({7, 4096}, f16);
    compile(program, {.engine = Engine::Interpreter})(x, want);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(x, got);
    EXPECT_EQ(got.to_floats(), want.to_floats()) << plan;
  }
}

// y = x - max(x), by rows of 32 KB.
std::string long_rows(int64_t slots) {
  return fmt::format(
      "program rows {{\n  param X: float32[5, 8192]\n  param Y: float32[5, 8192]\n"
      "  launch rows(bx: 5) threads(tx: 1024) plan(\"work persistent blocks=2\", \"ring x slots={}\") {{\n"
      "    fragment x: float32[1, 8192]\n    fragment held: float32[24, 1024]\n    fragment most: float32[1]\n"
      "    copy from=X[bx : 1, 0 : 8192] to=x\n    map i in 24, j in 1024 {{\n      held[i, j] = x[0, j]\n    }}\n"
      "    reduce max from=x to=most dim=1\n    map i in 1, j in 8192 {{\n      x[i, j] = x[i, j] - most[i]\n    }}\n"
      "    map i in 1, j in 1024 {{\n      x[i, j] = x[i, j] + held[23, j] * 0.0\n    }}\n"
      "    copy from=x to=Y[bx : 1, 0 : 8192]\n  }}\n}}\n",
      slots);
}

TEST(TilesAhead, LongRowsComeInBulk) {
  for (const int64_t slots : {2, 3}) {
    Planned p = planned(long_rows(slots));
    ASSERT_TRUE(p.plan.brings_ahead());
    const target::GpuTarget target = small_gpu();
    p.program = passes::materialize_async_rings(std::move(p.program), {}, &target).program;
    EXPECT_EQ(copies_ahead(p.program), 0);  // by cp.async
    int64_t expected = 0;
    ir::walk(p.program.launches[0].body, [&](const ir::Stmt& s) {
      if (const auto* n = s.as<ir::Expect>()) expected += *ir::constant_int(n->bytes);
    });
    EXPECT_GE(expected, slots * 8192 * 4);
    const NDArray x = numbers({5, 8192}, f32, 5), want = NDArray::zeros({5, 8192}, f32),
                  got = NDArray::zeros({5, 8192}, f32);
    expect_same_meaning(p, {x}, {5, 8192}, f32);
    const Program program(
        std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(long_rows(slots), "p.tile")}));
    compile(program, {.engine = Engine::Interpreter})(x, want);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(x, got);
    EXPECT_EQ(got.to_floats(), want.to_floats());
  }
}

// Who is done first takes the next tile, whatever the blocks' speeds are: here they are those of a simulated device.
TEST(TilesAhead, BlocksDrawTiles) {
  const auto plan_of = [](const std::string& text) {
    return fmt::format("{}", fmt::join(lines_of(planned(text).plan, planned(text).program), "\n"));
  };
  const std::string two = "\"work persistent blocks=2\"", drawn = "\"work persistent blocks=2 drawn\"";
  std::string text = long_rows(3);
  EXPECT_NE(plan_of(text).find("work persistent blocks=2 dealt"), std::string::npos);  // of few waves
  text.replace(text.find(two), two.size(), drawn);
  EXPECT_NE(plan_of(text).find("work persistent blocks=2 drawn"), std::string::npos);
  const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(text, "p.tile")}));
  const NDArray x = numbers({5, 8192}, f32, 5), want = NDArray::zeros({5, 8192}, f32);
  compile(program, {.engine = Engine::Interpreter})(x, want);
  const Executable simulated = compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"});
  for (int call = 0; call < 3; ++call) {  // each leaves the counter at zero
    const NDArray got = NDArray::zeros({5, 8192}, f32);
    simulated(x, got);
    EXPECT_EQ(got.to_floats(), want.to_floats());
  }
}

// Of loops that run once TMA brings much at a time; a loop that runs again brings it by cp.async: its turns do not say
// how often slots have been filled.
TEST(TilesAhead, BoxesComeToLoopsThatRunOnce) {
  const auto text = [](const char* outer, const char* end) {
    return fmt::format(
        "program columns {{\n  param X: float16[448, 512]\n  param Y: float16[1, 512]\n"
        "  launch columns(bx: 2) threads(tx: 128) {{\n    shared s: float16[64, 256]\n"
        "    fragment x: float16[64, 256]\n    fragment most: float16[256]\n    fill to=most value=-100.0\n    {0}\n"
        "    for k in 0..7 pipelined(stages=2) {{\n      copy from=X[k * 64 : 64, bx * 256 : 256] to=s\n"
        "      copy from=s to=x\n      reduce max from=x to=most dim=0 clear=false\n    }}\n    {1}\n"
        "    copy from=most to=Y[0, bx * 256 : 256]\n  }}\n}}\n",
        outer, end);
  };
  for (const bool again : {false, true}) {
    const std::string its = again ? text("for h in 0..3 {", "}") : text("", "");
    const target::GpuTarget target = small_gpu();
    const ir::TileProgram p =
        passes::materialize_async_rings(passes::canonicalize(ir::parse(its, "p.tile")), {}, &target).program;
    EXPECT_EQ(copies_ahead(p) > 0, again);
    const Program program(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(its, "p.tile")}));
    const NDArray x = numbers({448, 512}, f16, 7), want = NDArray::zeros({1, 512}, f16),
                  got = NDArray::zeros({1, 512}, f16);
    compile(program, {.engine = Engine::Interpreter})(x, want);
    compile(program, {.engine = Engine::Simulator, .arch = "sm_90a"})(x, got);
    EXPECT_EQ(got.to_floats(), want.to_floats()) << again;
  }
}

std::string refusal(const Rows& rows) {
  try {
    const ir::TileProgram p = passes::canonicalize(ir::parse(rows.text(), "p.tile"));
    passes::lower_to_threads(p, small_gpu());
  } catch (const CompileError& e) {
    std::string out = e.diagnostic().message;
    for (const auto& note : e.diagnostic().notes) out += "\n" + note.message;
    return out;
  }
  return "";
}

TEST(TilesAhead, IsRefusedWhereItCannotBe) {
  const std::string none = "launch 'rows' has no plan with the line 'work persistent'\n";
  EXPECT_EQ(refusal({}), "");
  EXPECT_EQ(refusal({.grid = "by: 2"}), none + "there are no more tiles than multiprocessors");
  EXPECT_EQ(refusal({.threads = 256, .registers = 2}),
            none + "5 blocks run beside each other on a multiprocessor, as it is");
  EXPECT_EQ(refusal({.out = "X"}), none + "'X' is written in the loop");
  EXPECT_EQ(refusal({.bring = "    map i in 1, j in 4096 {\n      x[i, j] = float32(X[by, j])\n    }\n"}),
            none + "no tile comes from global memory in a copy of its own at the top of the body");
  EXPECT_EQ(
      refusal({.row = "t",
               .bring = "    t: int32 = shuffle index value=by lane=3\n    copy from={in}[{row}, 0 : 4096] to=x\n"}),
      none + "no tile comes from global memory in a copy of its own at the top of the body");
  EXPECT_EQ(refusal({.bring = "    copy from={in}[{row}, 4 : 4096] to=x\n"}),
            none + "no tile comes from global memory in a copy of its own at the top of the body");
  EXPECT_EQ(refusal({.plan = "plan(\"work persistent\", \"ring x slots=40\") "}),
            none + "a ring of such tiles has 2 to 4 slots, not 40");
  EXPECT_EQ(
      refusal({.plan = "plan(\"work persistent drawn\") "}),
      "launch 'rows' has no plan with the line 'work persistent drawn'\nblocks do not draw tiles: TMA does not bring "
      "them in few copies");
}

}  // namespace
}  // namespace tilewright
