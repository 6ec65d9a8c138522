#include "runtime/executable.h"

#include <chrono>
#include <thread>

#include "runtime/plans.h"

namespace tilewright::runtime {
namespace {

// An engine that does what the test says.
struct Scripted : Callee {
  explicit Scripted(std::function<void(const BoundCall&, CallReport&)> act) : act(std::move(act)) {}
  void run(const BoundCall& call, CallReport& report) override { act(call, report); }
  std::function<void(const BoundCall&, CallReport&)> act;
};

Executable scripted(LaunchPlan plan, std::function<void(const BoundCall&, CallReport&)> act) {
  return make_executable(std::move(plan), std::make_unique<Scripted>(std::move(act)), "test", "");
}

LaunchPlan plan_with_workspace() {
  LaunchPlan plan;
  plan.name = "k";
  plan.parameters = {tensor_parameter("x", f32, {symbol(0)})};
  plan.symbols = {shape_symbol("n", 0, 0)};
  plan.workspaces = {{"w", f32, combine(IntOp::Kind::Mul, symbol(0), constant(2))}};
  return plan;
}

TEST(Executable, LendsOneWorkspaceAfterTheOtherToTheSameMemory) {
  std::vector<void*> seen;
  const Executable k = scripted(plan_with_workspace(), [&](const BoundCall& call, CallReport&) {
    ASSERT_EQ(call.buffer_count, 2);
    seen.push_back(call.buffers[1]);
    std::memset(call.buffers[1], 0xff, static_cast<size_t>(call.symbols()[0]) * 8);
  });
  for (int64_t n : {1000, 10, 1000}) k(NDArray::zeros({n}, f32));
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(seen[0]) % 64, 0u);
  EXPECT_EQ(seen[1], seen[0]);
  EXPECT_EQ(seen[2], seen[0]);
  k(NDArray::zeros({100000}, f32));  // grows
}

TEST(Executable, CallsThatOverlapHaveTheirOwnWorkspaces) {
  std::mutex mutex;
  std::set<void*> in_use;
  const Executable k = scripted(plan_with_workspace(), [&](const BoundCall& call, CallReport&) {
    {
      std::lock_guard lock(mutex);
      EXPECT_TRUE(in_use.insert(call.buffers[1]).second);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    std::lock_guard lock(mutex);
    in_use.erase(call.buffers[1]);
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const NDArray x = NDArray::zeros({100}, f32);
      for (int i = 0; i < 50; ++i) k(x);
    });
  for (std::thread& t : threads) t.join();
}

TEST(Executable, AWorkspaceOfImpossibleSizeIsRefused) {
  LaunchPlan plan = plan_with_workspace();
  plan.workspaces[0].size = combine(IntOp::Kind::Sub, symbol(0), constant(5));
  const Executable k = scripted(plan, [](const BoundCall&, CallReport&) { ADD_FAILURE() << "launched"; });
  expect_refusal(Code::ExpressionOverflow, "k: the size of the workspace 'w' is negative or has no value in 64 bits",
                 [&] { k(NDArray::zeros({2}, f32)); });
}

TEST(Executable, TheWorkspaceComesBackAfterAFailedCall) {
  std::vector<void*> seen;
  const Executable k = scripted(plan_with_workspace(), [&](const BoundCall& call, CallReport&) {
    seen.push_back(call.buffers[1]);
    if (seen.size() == 1) throw std::runtime_error("first");
  });
  const NDArray x = NDArray::zeros({100}, f32);
  EXPECT_THROW(k(x), std::runtime_error);
  k(x);
  EXPECT_EQ(seen[0], seen[1]);
}

// Printed, not asserted: the machine is shared.
TEST(Executable, CostOfACall) {
  const Executable k = scripted(matmul_plan(), [](const BoundCall&, CallReport&) {});
  const NDArray a = NDArray::zeros({256, 128}, f16), b = NDArray::zeros({128, 64}, f16),
                c = NDArray::zeros({256, 64}, f32);
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    constexpr int calls = 2000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) k(a, b, c);
    best = std::min(best,
                    std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls);
  }
  std::printf("call of a kernel with 3 tensors and 3 symbols: %.0f ns\n", best);
}

LaunchPlan plan_with_sites() {
  LaunchPlan plan;
  plan.name = "k";
  plan.parameters = {tensor_parameter("x", f32, {constant(1)})};
  plan.sites = {{Site::Kind::PrintMessage, "here", {}, {}},
                {Site::Kind::PrintScalar, "expr<i>", {}, {{"i", i32}}},
                {Site::Kind::PrintBuffer, "buffer<acc, float16>", {}, {{"acc", f16}}},
                {Site::Kind::Assert, "i < n", {"k.py", 3, 5}, {{"i", i64}, {"x", f64}}},
                {Site::Kind::Assert, "ok", {}, {}}};
  return plan;
}

uint64_t bits32(float value) { return std::bit_cast<uint32_t>(value); }

TEST(CallReport, PrintLines) {
  const LaunchPlan plan = plan_with_sites();
  verify(plan);
  CallReport report(plan);
  std::string text;
  const PrintSink before = replace_print_sink([&](std::string_view lines) { text += lines; });
  report.add(0, {1, 2, 3, 4, 5, 6}, {});
  const uint64_t minus_two[] = {static_cast<uint64_t>(-2)};
  report.add(1, {1, 0, 0, 0, 0, 0}, minus_two);
  const uint64_t elements[] = {30, bits32(0.5f), bits32(-std::numeric_limits<float>::infinity()), bits32(0.1f)};
  report.add(2, {}, elements);
  replace_print_sink(before);
  EXPECT_EQ(text,
            "msg='here' BlockIdx=(1, 2, 3), ThreadIdx=(4, 5, 6)\n"
            "msg='expr<i>' BlockIdx=(1, 0, 0), ThreadIdx=(0, 0, 0): dtype=int32 value=-2\n"
            "msg='buffer<acc, float16>' BlockIdx=(0, 0, 0), ThreadIdx=(0, 0, 0): buffer=acc, index=30, dtype=float16 "
            "value=0.5\n"
            "msg='buffer<acc, float16>' BlockIdx=(0, 0, 0), ThreadIdx=(0, 0, 0): buffer=acc, index=31, dtype=float16 "
            "value=-inf\n"
            "msg='buffer<acc, float16>' BlockIdx=(0, 0, 0), ThreadIdx=(0, 0, 0): buffer=acc, index=32, dtype=float16 "
            "value=0.1\n");
}

TEST(CallReport, TheFirstAssertionInBlockOrderIsThrownWhateverTheOrderOfReports) {
  const std::vector<std::pair<int, Place>> reports = {{4, {1, 0, 0, 0, 0, 0}},
                                                      {3, {0, 1, 0, 0, 0, 0}},
                                                      {3, {1, 0, 0, 0, 0, 0}},
                                                      {3, {1, 0, 0, 1, 0, 0}},
                                                      {4, {0, 0, 1, 0, 0, 0}}};
  for (size_t start = 0; start < reports.size(); ++start) {
    const Executable k = scripted(plan_with_sites(), [&](const BoundCall&, CallReport& report) {
      for (size_t i = 0; i < reports.size(); ++i) {
        const auto& [site, place] = reports[(start + i) % reports.size()];
        const uint64_t values[] = {static_cast<uint64_t>(7), std::bit_cast<uint64_t>(0.25)};
        report.add(site, place, values);
      }
    });
    expect_refusal(Code::AssertionFailed,
                   "k: assertion failed in block (1, 0, 0), thread (0, 0, 0): i < n (i = 7, x = 0.25)",
                   [&] { k(NDArray::zeros({1}, f32)); });
  }
}

TEST(CallReport, AnAssertionKeepsItsPlace) {
  const Executable k = scripted(plan_with_sites(), [](const BoundCall&, CallReport& report) { report.add(3, {}, {}); });
  try {
    k(NDArray::zeros({1}, f32));
    FAIL();
  } catch (const LaunchError& e) {
    EXPECT_EQ(e.diagnostic().location, (SourceLocation{"k.py", 3, 5}));
    EXPECT_EQ(e.diagnostic().code_text(), "TW4015");
  }
}

TEST(CallReport, AReportFromNowhereIsOurMistake) {
  const LaunchPlan plan = plan_with_sites();
  CallReport report(plan);
  EXPECT_THROW(report.add(9, {}, {}), InternalError);
  EXPECT_THROW(report.add(1, {}, {}), InternalError);
}

}  // namespace
}  // namespace tilewright::runtime
