// Launches that wait for those before them and let those after them begin: what is refused, where a wait is under a
// plan of roles, what the CUDA engine writes, and that all engines compute the same.
#include "analysis/launch_order.h"

#include "driver/build_plan.h"
#include "driver/cuda_engine.h"
#include "driver/explain.h"
#include "ir/rewrite.h"
#include "passes/lower_to_threads.h"
#include "passes/pipeline.h"
#include "passes/planned.h"
#include "runtime/cuda_device.h"
#include "runtime/cuda_kernel.h"
#include "runtime/nvrtc.h"
#include "tilewright/compile.h"
#include "tilewright/cuda.h"
#include "tilewright/language.h"

namespace tilewright {
namespace {

constexpr const char* kWait = "    sync launches wait_only=true\n";
constexpr const char* kLetBegin = "    sync launches arrive_only=true\n";

// ---- what is refused

// Two launches of 64 threads; the grid of the first is n blocks.
std::string two(const std::string& first, const std::string& second, const std::string& n = "2") {
  return "program p {\n  param A: float32[64]\n  param B: float32[64]\n  param C: float32[64]\n  param n: int32\n"
         "  launch one(bx: " +
         n + ") threads(tx: 64) {\n" + first + "  }\n  launch other(by: 2) threads(ty: 64) {\n" + second + "  }\n}\n";
}

std::string findings(const std::string& text) {
  const ir::TileProgram p = passes::canonicalize(ir::parse(text, "p.tile"));
  std::string out;
  for (const Diagnostic& d : analysis::check_launch_order(p)) out += d.to_string() + "\n";
  return out;
}

TEST(LaunchOrder, WaitsAreStatementsOfTheLaunch) {
  const std::string wait = kWait;
  EXPECT_EQ(findings(two("", "    if n > 4 {\n" + wait + "    }\n")),
            "error TW3095 verify: the wait for the launches before stands under if: some threads might not come to it\n"
            "  --> p.tile:10:5\n"
            "note: the statement around it\n"
            "  --> p.tile:9:5\n"
            "help: let it be a statement of the kernel itself; it may stand before the loops and branches\n");
  for (const char* around : {"    for k in 0..n {\n", "    while C[0] > 0.0 {\n", "    role 0..32 {\n"})
    EXPECT_NE(findings(two("", around + wait + "    }\n")).find("TW3095"), std::string::npos) << around;
  EXPECT_EQ(findings(two("", wait + "    if n > 4 {\n" + kLetBegin + "    }\n" + wait)), "");
}

TEST(LaunchOrder, NobodyReturnsBeforeItWaits) {
  const std::string leave = "    if by == 1 {\n      return\n    }\n";
  EXPECT_EQ(findings(two("", leave + kWait)),
            "error TW3095 verify: threads that have returned do not come to the wait for the launches before\n"
            "  --> p.tile:12:5\n"
            "note: here they return\n"
            "  --> p.tile:10:7\n"
            "help: let the wait stand before the return\n");
  EXPECT_EQ(findings(two("", kWait + leave)), "");
}

TEST(LaunchOrder, NothingComesBeforeTheWaitThatAnotherLaunchMayStillUse) {
  const std::string wait = kWait, writes_b = "    B[tx] = A[tx]\n", reads_b = "    C[ty] = B[ty]\n";
  EXPECT_EQ(findings(two(writes_b, reads_b + wait)),
            "error TW3096 verify: 'B' is read before the wait for the launches before, of which 'one' may still run\n"
            "  --> p.tile:10:5\n"
            "note: 'B' is changed there\n"
            "  --> p.tile:7:5\n"
            "help: wait first: pdl_sync() in front of it\n");
  EXPECT_EQ(findings(two(writes_b, wait + reads_b)), "");
  // What the first launch reads, and what both write.
  EXPECT_NE(findings(two(writes_b, "    A[ty] = 1.0\n" + wait)).find("'A' is changed there"), 0u);
  EXPECT_NE(findings(two(writes_b, "    A[ty] = 1.0\n" + wait)).find("'A' is read there"), std::string::npos);
  EXPECT_NE(findings(two(writes_b, "    B[ty] = 1.0\n" + wait)).find("'B' is changed there"), std::string::npos);
  EXPECT_NE(findings(two(writes_b, "    copy from=B[0 : 64] to=C[0 : 64]\n" + wait)).find("TW3096"), std::string::npos);
  // What nobody changes may be read, and what nobody uses be changed: the first launch began when the calls before had
  // ended.
  EXPECT_EQ(findings(two(writes_b, "    local x: float32\n    x = A[ty]\n" + wait + "    C[ty] = x + B[ty]\n")), "");
  EXPECT_EQ(findings(two(writes_b, "    C[ty] = 1.0\n" + wait)), "");
}

TEST(LaunchOrder, TheCallBeforeMayStillRun) {
  const std::string wait = kWait, reads_c = "    local x: float32\n    x = C[tx]\n", writes_c = "    C[ty] = 1.0\n";
  EXPECT_EQ(findings(two(reads_c + wait, writes_c)),
            "error TW3096 verify: 'C' is read before the wait for the launches before, of which 'other' of the call "
            "before may still run\n"
            "  --> p.tile:8:5\n"
            "note: 'C' is changed there\n"
            "  --> p.tile:12:5\n"
            "help: wait first: pdl_sync() in front of it\n");
  // A launch without blocks separates nothing.
  const std::string early = "    C[ty] = 1.0\n" + wait;
  EXPECT_EQ(findings(two("    B[tx] = A[tx]\n", early)), "");
  EXPECT_NE(findings(two("    B[tx] = A[tx]\n", early, "n")).find("'other' of the call before"), std::string::npos);
}

TEST(LaunchOrder, OfAnyEngine) {
  Tensor A("A", {64}, f32), B("B", {64}, f32);
  const Program p = prim_func("early", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      (void)bx;
      for (auto i : Parallel(64)) B(i) = A(i);
    }
    for (auto bx : Kernel(1, {.threads = 64})) {
      (void)bx;
      auto b = alloc_fragment({64}, f32);
      copy(B, b);
      pdl_sync();
      copy(b, A);
    }
  });
  for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator}) {
    try {
      compile(p, {.engine = engine, .arch = "sm_90a"});
      FAIL();
    } catch (const CompileError& e) {
      EXPECT_EQ(e.diagnostic().code_text(), "TW3096");
    }
  }
}

TEST(LaunchOrder, TextSaysWhichHalf) {
  for (const char* half : {"", " wait_only=true arrive_only=true", " count=32 wait_only=true"}) {
    const std::string text = two("    sync launches" + std::string(half) + "\n", "");
    try {
      ir::check_valid(ir::parse(text, "p.tile"));
      FAIL() << text;
    } catch (const CompileError& e) {
      EXPECT_EQ(e.diagnostic().code_text(), "TW3068");
    }
  }
}

// ---- under a plan

// The wait stands behind the clearing and in front of the loads; the results go out before the next may begin.
std::string gemm_text() {
  return "program gemm {\n  param A: float16[256, 160]\n  param B: float16[160, 128]\n  param C: float16[256, 128]\n"
         "  launch gemm(bx: 2, by: 4) threads(tx: 128) {\n"
         "    shared As: float16[64, 32]\n    shared Bs: float16[32, 64]\n    fragment acc: float32[64, 64]\n"
         "    fill to=acc value=0.0\n" +
         std::string(kWait) +
         "    for k in 0..5 pipelined(stages=4) {\n      copy from=A[by * 64 : 64, k * 32 : 32] to=As\n"
         "      copy from=B[k * 32 : 32, bx * 64 : 64] to=Bs\n      gemm a=As b=Bs c=acc\n    }\n"
         "    copy from=acc to=C[by * 64 : 64, bx * 64 : 64]\n" +
         kLetBegin + "  }\n}\n";
}

TEST(LaunchOrder, RolesBeginWhenAllThreadsHaveWaited) {
  for (const plan::Limits& limits : {plan::Limits{}, plan::Limits{.staging = plan::Staging::None, .alternating = false},
                                     plan::Limits{.side_by_side = false}}) {
    const Planned p = planned(gemm_text(), limits);
    ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
    EXPECT_TRUE(passes::launch_order(p.program.launches[0]).waits &&
                passes::launch_order(p.program.launches[0]).lets_begin);
    const ir::Body& body = p.program.launches[0].body;
    EXPECT_TRUE(analysis::waits_for_launches(body.front()));
    int waits = 0, math = 0;
    ir::walk(body, [&](const ir::Stmt& s) { waits += analysis::waits_for_launches(s) ? 1 : 0; });
    for (const ir::Stmt& s : body) {
      const auto* role = s.as<ir::Role>();
      bool multiplies = false;
      if (role) ir::walk(role->body, [&](const ir::Stmt& x) { multiplies = multiplies || x.as<ir::Gemm>(); });
      const bool ends = role && analysis::lets_launches_begin(role->body.back());
      EXPECT_EQ(ends, multiplies);
      math += multiplies ? 1 : 0;
    }
    EXPECT_EQ(waits, 1);
    EXPECT_EQ(math, p.plan.takes(plan::Role::Takes::TilesInTurn) ? 2 : 1);
    expect_same_meaning(p, {numbers({256, 160}, f16, 1), numbers({160, 128}, f16, 2)}, {256, 128}, f16);
  }
}

// Without a loader the wait is where the program has it: behind what came before, in front of what came after.
TEST(LaunchOrder, WithoutRolesItStaysInItsPlace) {
  const Planned p = planned(gemm_text(), {.slots = 0});
  ASSERT_FALSE(p.plan.has_loader());
  EXPECT_TRUE(passes::launch_order(p.program.launches[0]).waits);
  const ir::Body& body = p.program.launches[0].body;
  ASSERT_GE(body.size(), 3u);
  EXPECT_FALSE(analysis::waits_for_launches(body.front()));
  EXPECT_TRUE(analysis::lets_launches_begin(body.back()));
  std::string text = gemm_text();
  text.replace(text.find("    fill"), 0, "    local first: float16\n    first = A[0, tx]\n");
  text.replace(text.find("pipelined(stages=4)"), 19, "pipelined(stages=1)");
  for (const char* arch : {"sm_90a", "sm_80"}) {
    const passes::ThreadLowering l =
        passes::lower_to_threads(passes::canonicalize(ir::parse(text, "p.tile")), gpu_target(arch), {.slots = 0});
    int waits = 0, before = 0;
    ir::walk(l.threads.launches[0].body, [&](const ir::Stmt& s) {
      waits += analysis::waits_for_launches(s) ? 1 : 0;
      ir::for_each_expr(s, [&](const ir::Expr& e) {
        ir::walk(e, [&](const ir::Expr& x) {
          const auto* n = x.as<ir::Load>();
          before += n && waits == 0 && l.threads.buffer(n->buffer).space == ir::Space::Global;
        });
      });
      if (const auto* copy = s.as<ir::Copy>(); copy && waits == 0)
        before += l.threads.buffer(copy->from.buffer).space == ir::Space::Global;
    });
    EXPECT_EQ(waits, arch == std::string("sm_90a") ? 1 : 0);
    if (waits == 1) {
      EXPECT_EQ(before, 1);
    }
  }
}

// ---- engines

// C = 2 B, of B = A + 1: the first launch lets the second begin before it has written anything, and takes its time.
Program producer_and_consumer(bool in_time, int64_t work = 4) {
  Tensor A("A", {4096}, f32), B("B", {4096}, f32), C("C", {4096}, f32);
  return prim_func("two", {A, B, C}, [&] {
    for (auto bx : Kernel(16, {.threads = 256})) {
      pdl_trigger();
      for (auto i : Parallel(256)) {
        auto x = alloc_var(f32, A(bx * 256 + i));
        for (auto k : serial(work)) {
          (void)k;
          x = x * 1.5f;
          x = x / 1.5f;
        }
        B(bx * 256 + i) = x + 1;
      }
    }
    for (auto bx : Kernel(16, {.threads = 256})) {
      auto b = alloc_fragment({256}, f32);
      auto own = alloc_fragment({256}, f32);
      copy(A(slice(bx * 256, bx * 256 + 256)), own);
      if (in_time) pdl_sync();
      copy(B(slice(bx * 256, bx * 256 + 256)), b);
      for (auto i : Parallel(256)) C(bx * 256 + i) = b(i) * 2 + own(i) - own(i);
    }
  });
}

NDArray small_numbers() {
  NDArray a = NDArray::zeros({4096}, f32);
  for (int64_t i = 0; i < 4096; ++i) a.set_float({i}, static_cast<double>(i % 64) * 3);
  return a;
}

void expect_doubled(const NDArray& a, const NDArray& c) {
  for (int64_t i = 0; i < 4096; ++i) ASSERT_NEAR(c.get_float({i}), 2 * (a.get_float({i}) + 1), 0.01) << i;
}

TEST(LaunchOrder, EnginesThatRunOneLaunchAfterTheOther) {
  for (const Engine engine : {Engine::Interpreter, Engine::Cpu, Engine::Simulator}) {
    const NDArray a = small_numbers(), b = NDArray::zeros({4096}, f32), c = NDArray::zeros({4096}, f32);
    compile(producer_and_consumer(true), {.engine = engine, .arch = "sm_90a"})(a, b, c);
    expect_doubled(a, c);
  }
}

runtime::cuda::CudaKernelText text_of(const Program& program, const std::string& arch) {
  Dump dump("order");
  return write_cuda(passes::run_passes(order_symbols(program.box().program), passes::all_passes(), [](auto&&...) {}),
                    arch, dump)
      .kernel;
}

TEST(LaunchOrder, ALaunchThatWaitsMayBeginEarly) {
  const auto text = text_of(producer_and_consumer(true), "sm_90a");
  ASSERT_EQ(text.plan.launches.size(), 2u);
  EXPECT_FALSE(text.plan.launches[0].programmatic_serialization);
  EXPECT_TRUE(text.plan.launches[1].programmatic_serialization);
  const size_t wait = text.text.find("  cudaGridDependencySynchronize();\n"), kernel = text.text.rfind("__global__");
  ASSERT_NE(wait, std::string::npos);
  EXPECT_LT(kernel, wait);
  EXPECT_LT(text.text.find("  cudaTriggerProgrammaticLaunchCompletion();\n"), kernel);
  EXPECT_EQ(text.text.find("__restrict__"), std::string::npos);  // what is read behind the wait may be new
  const auto old = text_of(producer_and_consumer(true), "sm_80");
  EXPECT_FALSE(old.plan.launches[1].programmatic_serialization);
  EXPECT_EQ(old.text.find("cudaGridDependencySynchronize"), std::string::npos);
  EXPECT_EQ(old.text.find("cudaTriggerProgrammaticLaunchCompletion"), std::string::npos);
  try {
    runtime::Nvrtc::get();
  } catch (const CompileError& e) {
    GTEST_SKIP() << e.what();
  }
  EXPECT_NO_THROW(runtime::cuda::compile_cuda(text));
}

// All blocks of a grid that they wait in run at once.
TEST(LaunchOrder, NotOneWhoseBlocksWaitForEachOther) {
  Tensor A("A", {4, 32}, i32), B("B", {4, 32}, i32);
  const auto text = text_of(prim_func("exchange", {A, B},
                                      [&] {
                                        for (auto b : Kernel(4, {.threads = 32})) {
                                          pdl_sync();
                                          auto t = get_thread_binding();
                                          A(b, t) = b * 32 + t;
                                          sync_grid();
                                          B(b, t) = A(3 - b, t);
                                        }
                                      }),
                            "sm_90a");
  EXPECT_TRUE(text.plan.launches[0].cooperative);
  EXPECT_FALSE(text.plan.launches[0].programmatic_serialization);
}

TEST(LaunchOrder, RolesInCudaText) {
  const Program program(
      std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{ir::parse(gemm_text(), "g.tile")}));
  const auto text = text_of(program, "sm_90a");
  ASSERT_TRUE(text.plan.launches[0].programmatic_serialization);
  const size_t kernel = text.text.rfind("__global__");
  const size_t wait = text.text.find("  cudaGridDependencySynchronize();\n", kernel);
  const size_t load = text.text.find("  tw_tma_load_2d(", kernel);
  ASSERT_NE(wait, std::string::npos);
  ASSERT_NE(load, std::string::npos);
  EXPECT_LT(wait, load);
  try {
    runtime::Nvrtc::get();
  } catch (const CompileError& e) {
    GTEST_SKIP() << e.what();
  }
  EXPECT_NO_THROW(runtime::cuda::compile_cuda(text));
}

TEST(LaunchOrder, ExplainSaysWhereItWaits) {
  const auto text = [](const ir::TileProgram& p, const char* arch) { return to_text(explain_gpu(p, {}, arch, false)); };
  const ir::TileProgram gemm = ir::parse(gemm_text(), "g.tile"), two = producer_and_consumer(true).box().program;
  const std::string roles = text(gemm, "sm_90a"), plain = text(two, "sm_90a"), old = text(gemm, "sm_80");
  EXPECT_NE(roles.find("it waits for them before the roles begin, as the loader runs ahead"), std::string::npos)
      << roles;
  EXPECT_NE(roles.find("lets those after it begin where the roles that write results are done"), std::string::npos);
  EXPECT_NE(roles.find("wait for the launches before this one"), std::string::npos);
  EXPECT_NE(plain.find("it waits for them where the program does"), std::string::npos) << plain;
  EXPECT_EQ(old.find("launches before"), std::string::npos) << old;
}

// A consumer that does not wait would read what was there before.
TEST(GpuLaunchOrder, WhatTheLaunchBeforeWritesIsThereBehindTheWait) {
  if (runtime::cuda::device_count() == 0) GTEST_SKIP() << "no CUDA device";
  constexpr Device kCuda0{2, 0};
  const Executable two = compile(producer_and_consumer(true, 20000), {.engine = Engine::Cuda});
  const NDArray a = small_numbers(), there = a.to(kCuda0);
  for (int turn = 0; turn < 20; ++turn) {
    const NDArray b = NDArray::zeros({4096}, f32, kCuda0), c = NDArray::zeros({4096}, f32, kCuda0);
    two(there, b, c);
    two(there, b, c);
    expect_doubled(a, c.to({1, 0}));
  }
}

}  // namespace
}  // namespace tilewright
