// Programs whose tiles want more registers than a thread has: other threads and shorter steps are taken, and mean the
// same on the interpreter and on the simulated device.
#include "plan/fit_registers.h"
#include "analysis/half_steps.h"
#include "driver/cuda_engine.h"
#include "ir/rewrite.h"
#include "passes/planned.h"
#include "tilewright/compile.h"

namespace tilewright {
namespace {

// The gradient of attention over a block of keys, of whole numbers: all sums are exact in any order.
std::string backward(int rows, int step, int threads, bool causal, int length = 256) {
  const std::string see = "        P[i, j] = select(bx * {0} + i <= k * {1} + j, P[i, j], 0.0)\n";
  const std::string mask = fmt::format("      map i in {{0}}, j in {{1}} {{{{\n{}      }}}}\n", see);
  const std::string text =
      "program backward {{\n  param Q: float16[{2}, 128]\n  param K: float16[{2}, 128]\n  param V: float16[{2}, 128]\n"
      "  param G: float16[{2}, 128]\n  param L: float32[{2}]\n  param DK: float32[{2}, 128]\n"
      "  param DV: float32[{2}, 128]\n  param DQ: float32[{2}, 128]\n"
      "  launch backward(bx: {2} // {0}) threads(tx: {3}) {{\n    shared Ks: float16[{0}, 128]\n"
      "    shared Vs: float16[{0}, 128]\n    shared q: float16[{1}, 128]\n    shared g: float16[{1}, 128]\n"
      "    shared l: float32[{1}]\n    shared dSs: float16[{0}, {1}]\n    fragment P: float32[{0}, {1}]\n"
      "    fragment dP: float32[{0}, {1}]\n    fragment Pc: float16[{0}, {1}]\n    fragment dS: float16[{0}, {1}]\n"
      "    fragment dk: float32[{0}, 128]\n    fragment dv: float32[{0}, 128]\n    fragment dq: float32[{1}, 128]\n"
      "    copy from=K[bx * {0} : {0}, 0 : 128] to=Ks\n    copy from=V[bx * {0} : {0}, 0 : 128] to=Vs\n"
      "    fill to=dv value=0.0\n    fill to=dk value=0.0\n"
      "    for k in 0..{2} // {1} pipelined(stages=2) {{\n      copy from=Q[k * {1} : {1}, 0 : 128] to=q\n"
      "      fill to=P value=0.0\n      gemm a=Ks b=q c=P transpose_b=true policy=full_row\n"
      "      copy from=L[k * {1} : {1}] to=l\n      map i in {0}, j in {1} {{\n"
      "        P[i, j] = max(min(P[i, j] - l[j], 3.0), -3.0)\n      }}\n" +
      (causal ? mask : "") +
      "      copy from=G[k * {1} : {1}, 0 : 128] to=g\n      fill to=dP value=0.0\n"
      "      gemm a=Vs b=g c=dP transpose_b=true policy=full_row\n      copy from=P to=Pc\n"
      "      gemm a=Pc b=g c=dv policy=full_row\n      map i in {0}, j in {1} {{\n"
      "        dS[i, j] = float16(max(min(P[i, j] * dP[i, j], 4.0), -4.0))\n      }}\n"
      "      gemm a=dS b=q c=dk policy=full_row\n      copy from=dS to=dSs\n      fill to=dq value=0.0\n"
      "      gemm a=dSs b=Ks c=dq transpose_a=true\n      map i in {1}, j in 128 {{\n"
      "        atomic add to=DQ[k * {1} + i, j] value=dq[i, j]\n      }}\n    }}\n"
      "    copy from=dv to=DV[bx * {0} : {0}, 0 : 128]\n    copy from=dk to=DK[bx * {0} : {0}, 0 : 128]\n  }}\n}}\n";
  return fmt::format(fmt::runtime(text), rows, step, length, threads);
}

std::vector<NDArray> arrays_of_backward(int length) {
  std::vector<NDArray> out;
  uint64_t state = 5;
  auto add = [&](std::vector<int64_t> shape, DType type, int64_t range) {
    NDArray a = NDArray::zeros(shape, type);
    std::vector<double> values(static_cast<size_t>(a.size()));
    for (double& v : values) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      v = range == 0 ? 0 : static_cast<double>(static_cast<int64_t>(state >> 33) % range - range / 2);
    }
    a.assign_floats(values);
    out.push_back(a);
  };
  for (int i = 0; i < 4; ++i) add({length, 128}, f16, 3);
  add({length}, f32, 5);
  for (int i = 0; i < 3; ++i) add({length, 128}, f32, 0);
  return out;
}

std::vector<double> results(const ir::TileProgram& program, std::vector<NDArray> arrays, Engine engine) {
  for (NDArray& a : arrays) a = a.clone();
  const Program boxed(std::make_shared<const ir::TileProgramBox>(ir::TileProgramBox{program}));
  const std::vector<Argument> arguments(arrays.begin(), arrays.end());
  compile(boxed, {.engine = engine, .arch = "sm_90a"}).call(arguments);
  std::vector<double> out;
  for (size_t i = arrays.size() - 3; i < arrays.size(); ++i) {
    const std::vector<double> one = arrays[i].to_floats();
    out.insert(out.end(), one.begin(), one.end());
  }
  return out;
}

ir::TileProgram parsed(const std::string& text) { return passes::canonicalize(ir::parse(text, "p.tile")); }

TEST(FitRegisters, ShorterStepsAndMoreThreadsWhereTilesWantMoreRegistersThanThereAre) {
  const struct {
    int rows, step, threads, taken;
    const char* fitted;
  } table[] = {
      {64, 64, 128, 128, ""},
      {64, 128, 128, 128, "half of a step of 'k' at a time: tiles take 208 registers a thread, not 288"},
      {128, 64, 128, 256, "256 threads instead of 128: tiles take 208 registers a thread, not 416"},
      {128, 128, 128, 256,
       "half of a step of 'k' at a time, 256 threads instead of 128: tiles take 208 registers a thread, not 576"},
      {128, 128, 256, 256, "half of a step of 'k' at a time: tiles take 208 registers a thread, not 288"},
  };
  for (const auto& row : table) {
    for (const bool causal : {false, true}) {
      const std::string text = backward(row.rows, row.step, row.threads, causal);
      const passes::ThreadLowering lowered = passes::lower_to_threads(parsed(text), gpu_target("sm_90a"));
      ASSERT_TRUE(lowered.plans[0].has_loader()) << lowered.plans[0].why_no_loader() << text;
      EXPECT_EQ(plan::text(lowered.plans[0].fit, lowered.tiles), row.fitted);
      EXPECT_EQ(lowered.tiles.launches[0].threads[0], row.taken + 128);
      for (const auto& [stmt, choice] : lowered.placements[0].gemms) EXPECT_TRUE(choice.wgmma) << choice.why_not_wgmma;
    }
  }
}

TEST(FitRegisters, PlannedProgramsMeanTheSame) {
  for (const auto& [rows, step] : {std::pair(64, 128), std::pair(128, 128)}) {
    for (const bool causal : {false, true}) {
      const std::string text = backward(rows, step, 128, causal);
      const Planned p = planned(text);
      ASSERT_TRUE(p.plan.has_loader()) << p.plan.why_no_loader();
      EXPECT_TRUE(p.plan.fit.any()) << rows << " x " << step << (causal ? " causal" : "");
      const std::vector<NDArray> arrays = arrays_of_backward(256);
      const std::vector<double> want = results(p.plain, arrays, Engine::Interpreter);
      EXPECT_EQ(results(p.program, arrays, Engine::Interpreter), want);
      EXPECT_EQ(results(ir::parse(text, "p.tile"), arrays, Engine::Simulator), want);
    }
  }
}

// What a step leaves for the next one, counts, or says of its place is more than what its halves do.
TEST(FitRegisters, StepsThatAreMoreThanTheirHalvesStayWhole) {
  const std::string text = backward(128, 128, 128, true);
  auto halves = [](const std::string& text) {
    ir::TileProgram p = parsed(text);
    const ir::Launch& launch = p.launches[0];
    for (size_t i = 0; i < launch.body.size(); ++i)
      if (launch.body[i].as<ir::For>()) return analysis::half_steps(p, launch, i).has_value();
    return false;
  };
  auto with = [&](const std::string& from, const std::string& to) {
    std::string out = text;
    const size_t at = out.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return out.replace(at, from.size(), to);
  };
  EXPECT_TRUE(halves(text));
  EXPECT_FALSE(halves(with("      fill to=dP value=0.0\n", "")));  // of the step before
  EXPECT_FALSE(halves(with("k * 128 + j, P", "k * 64 + j, P")));   // another place
  EXPECT_FALSE(halves(with("k * 128 + j, P", "k + 128 * j, P")));  // no place
  EXPECT_FALSE(halves(with("<= k * 128 + j, P", "<= j, P")));      // of the tile
  EXPECT_FALSE(halves(with("- l[j], 3.0", "- float32(k), 3.0")));  // the step's number
  EXPECT_FALSE(halves(with("      copy from=P to=Pc\n", "      copy from=P to=Pc\n      n: int32 = k\n")));
  EXPECT_FALSE(halves(with("value=dq[i, j]", "value=dk[i, j]")));  // of all steps
  EXPECT_FALSE(halves(with("DQ[k * 128 + i, j]", "DQ[i, j]")));    // always there
  EXPECT_FALSE(halves(with("    copy from=dv to=", "    copy from=P to=DK[0 : 128, 0 : 128]\n    copy from=dv to=")));
  EXPECT_FALSE(halves(with("pipelined(stages=2)", "")));
}

// Softmax over a step is another one over its half, but two warpgroups have the registers.
TEST(FitRegisters, OnlyThreadsAreAddedWhereRowsAreReduced) {
  const std::string plain =
      "program attend {\n  param Q: float16[256, 64]\n  param K: float16[256, 64]\n  param V: float16[256, 64]\n"
      "  param O: float32[256, 64]\n  launch attend(bx: 2) threads(tx: 128) {\n    shared Qs: float16[128, 64]\n"
      "    shared Ks: float16[128, 64]\n    shared Vs: float16[128, 64]\n    fragment S: float32[128, 128]\n"
      "    fragment P: float16[128, 128]\n    fragment acc: float32[128, 64]\n    fragment most: float32[128]\n"
      "    copy from=Q[bx * 128 : 128, 0 : 64] to=Qs\n    fill to=acc value=0.0\n    fill to=most value=-1000.0\n"
      "    for k in 0..2 pipelined(stages=2) {\n      copy from=K[k * 128 : 128, 0 : 64] to=Ks\n"
      "      fill to=S value=0.0\n      gemm a=Qs b=Ks c=S transpose_b=true policy=full_row\n"
      "      copy from=V[k * 128 : 128, 0 : 64] to=Vs\n      reduce max from=S to=most dim=1 clear=false\n"
      "      map i in 128, j in 128 {\n        S[i, j] = max(S[i, j] - most[i], -8.0)\n      }\n      copy from=S "
      "to=P\n"
      "      map i in 128, j in 64 {\n        acc[i, j] = acc[i, j] * 0.5\n      }\n"
      "      gemm a=P b=Vs c=acc policy=full_row\n    }\n    copy from=acc to=O[bx * 128 : 128, 0 : 64]\n  }\n}\n";
  const passes::ThreadLowering lowered = passes::lower_to_threads(parsed(plain), gpu_target("sm_90a"));
  EXPECT_EQ(plan::text(lowered.plans[0].fit, lowered.tiles),
            "256 threads instead of 128: tiles take 128 registers a thread, not 256");
  // A thread's own number or storage says how many there are.
  std::string numbered = plain;
  numbered.replace(numbered.find("acc[i, j] * 0.5"), 15, "acc[i, j] * select(tx == 40, 1.0, 0.5)");
  EXPECT_EQ(passes::lower_to_threads(parsed(numbered), gpu_target("sm_90a")).plans[0].fit, plan::Fit{});
  const Planned p = planned(plain);
  expect_same_meaning(p, {numbers({256, 64}, f16, 1), numbers({256, 64}, f16, 2), numbers({256, 64}, f16, 3)},
                      {256, 64}, f32);
}

// A row that comes by TMA takes its own bytes, not those of a panel eight rows high.
TEST(FitRegisters, ARowOfATensorComesInOneCopy) {
  const passes::ThreadLowering lowered =
      passes::lower_to_threads(parsed(backward(128, 128, 128, false)), gpu_target("sm_90a"));
  int found = 0;
  for (const ir::Buffer& b : lowered.threads.buffers) {
    if (b.name != "l" || b.space != ir::Space::Shared || !b.memory) continue;
    EXPECT_EQ(b.memory->bytes(), 2 * 64 * 4);
    ++found;
  }
  EXPECT_EQ(found, 1);
}

// Rows of a program that reduces them, by so many threads.
struct FewThreads {
  int64_t columns = 8192, rows = 4096;
  int threads = 1024;
  std::string plan = "", more = "", type = "bfloat16";

  std::string text() const {
    return fmt::format(
        "program rows {{\n  param X: {0}[{1}, {2}]\n  param F: int32[1]\n  param Y: {0}[{1}, {2}]\n"
        "  launch rows(by: {1}) threads(tx: {3}){4} {{\n    fragment x: float32[1, {2}]\n    fragment most: "
        "float32[1]\n"
        "    copy from=X[by : 1, 0 : {2}] to=x\n    reduce max from=x to=most dim=1\n    map i in 1, j in {2} {{\n"
        "      x[i, j] = x[i, j] - most[i]\n    }}\n{5}    copy from=x to=Y[by : 1, 0 : {2}]\n  }}\n}}\n",
        type, rows, columns, threads, plan.empty() ? "" : " plan(\"" + plan + "\")", more);
  }
  plan::Fit fit(const char* arch = "sm_90a") const {
    return passes::lower_to_threads(parsed(text()), gpu_target(arch)).plans[0].fit;
  }
};

TEST(FitRegisters, RowsGetAsManyThreadsAsHaveSixtyFourColumns) {
  for (const char* arch : {"sm_90a", "sm_80"}) {
    EXPECT_EQ(FewThreads{}.fit(arch).threads, 128);
    EXPECT_EQ((FewThreads{.columns = 16384}.fit(arch).threads), 256);
    EXPECT_EQ((FewThreads{.columns = 4096, .threads = 256}.fit(arch).threads), 128);
  }
  const passes::ThreadLowering lowered = passes::lower_to_threads(parsed(FewThreads{}.text()), gpu_target("sm_90a"));
  EXPECT_EQ(lowered.threads.launches[0].threads, (std::vector<int64_t>{128}));
  EXPECT_EQ(plan::text(lowered.plans[0].fit, lowered.tiles), "128 threads: tiles take 64 registers a thread, not 8");
  EXPECT_EQ((FewThreads{.plan = "fit threads=256"}.fit().threads), 256);
}

TEST(FitRegisters, RowsKeepTheirThreads) {
  EXPECT_FALSE((FewThreads{.threads = 128}.fit().any())) << "as many as it would get";
  EXPECT_FALSE((FewThreads{.columns = 16384, .threads = 128}.fit().any())) << "fewer than it would get";
  EXPECT_FALSE((FewThreads{.rows = 500}.fit().any())) << "a multiprocessor has few blocks";
  EXPECT_FALSE((FewThreads{.plan = "fit none"}.fit().any()));
  EXPECT_FALSE((FewThreads{.more = "    if tx == 900 {\n      most[0] = 0.0\n    }\n"}.fit().any()))
      << "a thread's number";
  EXPECT_FALSE((FewThreads{.more = "    atomic add to=F[0] value=1 each=true\n"}.fit().any())) << "each thread adds";
  EXPECT_TRUE((FewThreads{.more = "    atomic add to=F[0] value=1\n"}.fit().any()));
  EXPECT_FALSE((FewThreads{.more = "    for k in 0..2 {\n      reduce sum from=x to=most dim=1\n    }\n"}.fit().any()));
}

TEST(FitRegisters, RowsMeanTheSameByFewerThreads) {
  Planned p = planned(FewThreads{.columns = 1024, .rows = 16, .type = "float32"}.text());
  EXPECT_EQ(p.program.launches[0].threads, (std::vector<int64_t>{128}));
  expect_same_meaning(p, {numbers({16, 1024}, f32, 3), numbers({1}, i32, 4)}, {16, 1024}, f32);
}

}  // namespace
}  // namespace tilewright
