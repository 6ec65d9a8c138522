// Plans that are handed in: what is printed can be handed back, what is fixed is as it was fixed or refused.
#include "plan/hints.h"

#include <gtest/gtest.h>

#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "driver/hand_in_plan.h"
#include "example.h"
#include "ir/print.h"
#include "passes/assume_fast_calls.h"
#include "passes/lower_to_threads.h"
#include "passes/pipeline.h"
#include "passes/planned.h"
#include "support/lines.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

passes::ThreadLowering lowered(const ir::TileProgram& program, const char* arch = "sm_90a") {
  const ir::TileProgram canonical = passes::run_passes(program, passes::all_passes(), [](auto&&...) {});
  return passes::lower_to_threads(passes::assume_fast_calls(canonical), gpu_target(arch));
}

// A product; `depth` steps of 64, for `threads` threads.
ir::TileProgram gemm(int threads = 256, const std::string& plan = "", int size = 2048) {
  const std::string text =
      "program gemm {{\n  param A: float16[{2}, 512]\n  param B: float16[512, {2}]\n  param C: float16[{2}, {2}]\n"
      "  launch gemm(bx: {2} // 128, by: {2} // 128) threads(tx: {0}) {1}{{\n    shared As: float16[128, 64]\n"
      "    shared Bs: float16[64, 128]\n    fragment acc: float32[128, 128]\n    fill to=acc value=0.0\n"
      "    for k in 0..8 pipelined(stages=3) {{\n      copy from=A[by * 128 : 128, k * 64 : 64] to=As\n"
      "      copy from=B[k * 64 : 64, bx * 128 : 128] to=Bs\n      gemm a=As b=Bs c=acc\n    }}\n"
      "    copy from=acc to=C[by * 128 : 128, bx * 128 : 128]\n  }}\n}}\n";
  return ir::parse(fmt::format(fmt::runtime(text), threads, plan, size), "gemm.tile");
}

std::string plan_of(const ir::TileProgram& program) { return print_plans(lowered(program)); }

std::string refusal(const ir::TileProgram& program, const std::string& plan) {
  try {
    lowered(with_plan(program, plan));
  } catch (const CompileError& e) {
    return e.diagnostic().to_string();
  }
  return "";
}

// Without what was rejected: what is fixed is not asked for again.
std::vector<std::string> decided(const passes::ThreadLowering& p) {
  std::vector<std::string> out;
  for (std::string& line : lines_in(print_plans(p)))
    if (!line.starts_with("not ")) out.push_back(std::move(line));
  return out;
}

// Lines as they are printed fix what was decided anyway.
TEST(Hints, WhatIsPrintedCanBeHandedBack) {
  int with_loader = 0;
  for (const examples::Example& e : examples::all_examples()) {
    const examples::Case c = e.cases(examples::Size::Gpu).front();
    if (c.names_instructions) continue;
    const ir::TileProgram program = order_symbols(c.program.box().program);
    const passes::ThreadLowering first = lowered(program);
    const passes::ThreadLowering again = lowered(with_plan(program, print_plans(first)));
    EXPECT_EQ(decided(again), decided(first)) << e.name;
    ir::ThreadProgram threads = again.threads;
    for (ir::Launch& launch : threads.launches) launch.plan.clear();
    EXPECT_EQ(ir::print(threads), ir::print(first.threads)) << e.name;
    for (const plan::Plan& plan : first.plans) with_loader += plan.has_loader();
  }
  EXPECT_GT(with_loader, 10);
}

// Three tiles that leave no room for two slots each: those have two with the least between their last use in a turn and
// the first in the next.
TEST(Hints, SomeTilesHaveASecondSlot) {
  const std::string plan = plan_of(ir::parse(R"(
program main {
  param Q: bfloat16[4, 4096, 16, 128]
  param K: bfloat16[4, 4096, 16, 128]
  param V: bfloat16[4, 4096, 16, 128]
  param O: bfloat16[4, 4096, 16, 128]
  option tf32=true
  option zero_unwritten=true
  launch main(bx: 1, by: 16, bz: 4) threads(tx: 256) {
    shared q: bfloat16[128, 128]
    shared k: bfloat16[128, 128]
    shared v: bfloat16[128, 128]
    shared hs: bfloat16[128, 128]
    shared ss: bfloat16[128, 128]
    fragment h: float32[128, 128]
    fragment s: float32[128, 128]
    fragment o: float32[128, 128]
    fill to=h value=0.0
    for t in 0..32 pipelined(stages=1) {
      copy from=Q[bz, t * 128 : 128, by, 0 : 128] to=q
      copy from=K[bz, t * 128 : 128, by, 0 : 128] to=k
      copy from=V[bz, t * 128 : 128, by, bx * 128 : 128] to=v
      gemm a=q b=k c=s transpose_b=true clear=true
      map i in 128, j in 128 {
        ss[i, j] = bfloat16(select(j <= i, s[i, j], 0.0))
      }
      copy from=h to=hs
      gemm a=ss b=v c=o clear=true
      gemm a=q b=hs c=o
      gemm a=k b=v c=h transpose_a=true
      copy from=o to=O[bz, t * 128 : 128, by, bx * 128 : 128]
    }
  }
}
)",
                                             "chunks.tile"));
  EXPECT_NE(plan.find("  ring q slots=2 bytes=32768 ahead\n"), std::string::npos) << plan;
  EXPECT_NE(plan.find("  ring k slots=2 bytes=32768 ahead\n"), std::string::npos) << plan;
  EXPECT_NE(plan.find("  ring v slots=1 bytes=32768 ahead\n"), std::string::npos) << plan;
}

struct Fixed {
  const char* line;
  int threads;
  std::string plan;  // a line of it
};

TEST(Hints, EachPartCanBeFixed) {
  const std::vector<Fixed> rows = {
      {"ring As slots=2", 256, "ring As, Bs slots=2 bytes=32768 ahead"},
      {"ring Bs slots=6", 256, "ring As, Bs slots=6 bytes=32768 ahead"},
      {"work one_tile", 256, "work one_tile"},
      {"work split k=2", 256, "work split k=2"},
      {"work persistent blocks=33", 256, "work persistent blocks=33"},
      {"work persistent reverse_odd_waves", 256, "work persistent blocks=132 reverse_odd_waves"},
      {"overlap no", 256, "overlap no"},
      {"epilogue as_written", 256, "epilogue as_written"},
      {"epilogue chunks", 256, "epilogue chunks of acc"},
      {"epilogue straight", 256, "epilogue straight"},
      {"role load registers=24\nrole compute registers=240", 256, "role load warps=8..12 registers=24"},
      {"role compute all_tiles", 128, "role compute warps=0..4 all_tiles"},
      {"role compute tiles_in_turn", 128, "role compute warps=4..8 registers=232 tiles_in_turn=1/2"},
      {"work one_tile blocks_per_multiprocessor=2", 128, "work one_tile blocks_per_multiprocessor=2"},
      {"fit threads=256", 128, "fit threads=256 live=64 of=128"},
      {"not a loader", 256, "not a loader: the plan that was handed in has none"},
  };
  for (const Fixed& row : rows) {
    const ir::TileProgram program = with_plan(gemm(row.threads), row.line);
    EXPECT_NE(plan_of(program).find("  " + row.plan + "\n"), std::string::npos) << row.line << "\n" << plan_of(program);
  }
}

// A launch that stays as it is written has one tile a block: to say so keeps tiles from being brought ahead.
TEST(Hints, OneTileIsWhatIsWritten) {
  const char* text =
      "program rows {\n  param X: bfloat16[16384, 32768]\n  param Y: bfloat16[16384, 32768]\n"
      "  launch rows(bx: 16384) threads(tx: 512) {{plan}}{\n    fragment x: float32[1, 32768]\n    fragment s: "
      "float32[1]\n"
      "    copy from=X[bx, 0 : 32768] to=x\n    map i in 1, j in 32768 {\n      x[i, j] = exp2(x[i, j])\n    }\n"
      "    reduce sum from=x to=s dim=1\n    map i in 1, j in 32768 {\n      x[i, j] = x[i, j] * s[i]\n    }\n"
      "    copy from=x to=Y[bx, 0 : 32768]\n  }\n}\n";
  const auto with = [&](const std::string& plan) {
    std::string own = text;
    own.replace(own.find("{{plan}}"), 8, plan);
    return plan_of(ir::parse(own, "rows.tile"));
  };
  EXPECT_NE(with("").find("work persistent blocks=132 drawn"), std::string::npos) << with("");
  EXPECT_NE(with("plan(\"work persistent dealt\") ").find("work persistent blocks=132 dealt"), std::string::npos);
  EXPECT_EQ(with("plan(\"work one_tile\") ").find("work persistent"), std::string::npos);
}

// Plans that nobody would choose mean what the program does.
TEST(Hints, FixedPlansMeanTheSame) {
  for (const char* plan :
       {"ring As slots=1", "ring As slots=5\nwork one_tile", "work split k=4", "epilogue straight\noverlap no",
        "work persistent blocks=3 reverse_odd_waves\nring Bs slots=2\nepilogue chunks",
        "role compute all_tiles\nepilogue as_written"}) {
    for (const int threads : {128, 256}) {
      const ir::TileProgram program = with_plan(gemm(threads, "", 256), plan);
      const Planned p = planned(ir::print(program));
      expect_same_meaning(p, {numbers({256, 512}, f16, 1), numbers({512, 256}, f16, 2)}, {256, 256}, f16);
    }
  }
}

TEST(Hints, StandInTheText) {
  const ir::TileProgram program = gemm(256, "plan(\"ring As slots=2\", \"overlap no\") ");
  EXPECT_EQ(program.launches[0].plan, (std::vector<std::string>{"ring As slots=2", "overlap no"}));
  EXPECT_EQ(ir::print(ir::parse(ir::print(program), "again.tile")), ir::print(program));
  EXPECT_NE(plan_of(program).find("slots=2"), std::string::npos);
  EXPECT_EQ(ir::print(with_plan(gemm(), "# of the product\nlaunch gemm\n  ring As slots=2  # few\n\n  overlap no\n")),
            ir::print(program));
}

TEST(Hints, WhatNoPlanHasIsRefused) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"slots=3", "no plan has the line 'slots=3': 'slots=3' is no part of one"},
      {"ring slots=3", "it names no tile"},
      {"ring As slots=0", "slots is '0'"},
      {"ring As slots=many", "slots is 'many'"},
      {"ring As slots=2 deep", "'deep' says nothing there"},
      {"work sideways", "'sideways' is none of one_tile, persistent"},
      {"work", "it ends too early"},
      {"role compute registers=100", "registers is '100'"},
      {"overlap maybe", "'maybe' is none of no, yes"},
      {"fit", "it changes neither steps nor threads"},
      {"not two loaders", "'two loaders' is no part of one"},
      {"launch other\nring As slots=2", "the plan speaks of a launch 'other'; the program has none"},
  };
  for (const auto& [plan, what] : rows) {
    const std::string text = refusal(gemm(), plan);
    EXPECT_EQ(text.substr(0, 18), "error TW8206 cuda:") << plan;
    EXPECT_NE(text.find(what), std::string::npos) << text;
  }
}

TEST(Hints, WhatCannotBeHadIsRefusedWithTheReason) {
  struct Row {
    const char* plan;
    int threads;
    const char* why;
  };
  for (const Row& row : {
           Row{"ring As slots=50", 256, "bytes of shared memory; sm_90 has"},
           Row{"ring Other slots=2", 256, "speaks of a tile 'Other', which it has not"},
           Row{"role compute registers=256", 256, "more than 384 threads have"},
           Row{"role compute iterations_in_turn", 256, "has no plan with the line"},
           Row{"role compute tiles_in_turn", 256, "has no plan with the line"},
           Row{"fit half_steps=k", 256, "has no plan with the line"},
           Row{"fit half_steps=j", 256, "speaks of a loop 'j', which it has not"},
           Row{"ring As slots=2 bytes=5", 256, "has no plan with the line"},
       }) {
    const std::string text = refusal(gemm(row.threads), row.plan);
    EXPECT_EQ(text.substr(0, 18), "error TW8206 cuda:") << row.plan << "\n" << text;
    EXPECT_NE(text.find(row.why), std::string::npos) << text;
  }
}

// Engines and GPUs without plans run such programs, and refuse what no plan has.
TEST(Hints, WhereThereAreNoPlansProgramsRunWithout) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(print_plans(lowered(with_plan(gemm(), "ring As slots=2"), "sm_80")),
            "launch gemm\n  not a loader: sm_80 has no TMA\n");
  EXPECT_NE(
      testing::internal::GetCapturedStderr().find("TW8206 cuda: launch 'gemm' has lines of a plan; sm_80 has no plans"),
      std::string::npos);
  const Program program(std::make_shared<ir::TileProgramBox>(ir::TileProgramBox{gemm(256, "", 128)}));
  EXPECT_NO_THROW(compile(program, {.engine = Engine::Interpreter, .plan = "ring As slots=2"}));
  EXPECT_THROW(compile(program, {.engine = Engine::Interpreter, .plan = "ring As slots=none"}), CompileError);
  EXPECT_NO_THROW(compile(program, {.engine = Engine::Simulator, .arch = "sm_90a", .plan = "ring As slots=2"}));
  EXPECT_THROW(compile(program, {.engine = Engine::Simulator, .arch = "sm_90a", .plan = "ring As slots=60"}),
               CompileError);
}

}  // namespace
}  // namespace tilewright
