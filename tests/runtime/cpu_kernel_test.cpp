#include "runtime/cpu_kernel.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include "runtime/host_compiler.h"
#include "runtime/kernel_cache.h"
#include "runtime/plans.h"
#include "runtime/scratch.h"
#include "runtime/shared_object.h"

namespace tilewright::runtime {
namespace {

// y[i] = a * x[i] + b over blocks of 128; asserts that i < limit and prints the first element.
constexpr const char* kScale = R"(
extern "C" int tw_entry(const struct tw_call* c) {
  const float* x = (const float*)c->buffers[0];
  float* y = (float*)c->buffers[1];
  const long long n = c->integers[0], limit = c->integers[2];
  union { unsigned int bits; float value; } a;
  a.bits = (unsigned int)c->integers[1];
  int failed = 0;
#pragma omp parallel for num_threads(c->max_threads) reduction(| : failed)
  for (long long block = 0; block < (n + 127) / 128; ++block)
    for (long long i = block * 128; i < block * 128 + 128 && i < n; ++i) {
      y[i] = a.value * x[i];
      if (i >= limit) {
        const long long place[6] = {block, 0, 0, i % 128, 0, 0};
        const unsigned long long values[2] = {(unsigned long long)i, (unsigned long long)limit};
        c->report(c->host, 0, place, values, 2);
        failed = 1;
      }
    }
  return failed;
}
)";

LaunchPlan scale_plan() {
  LaunchPlan plan;
  plan.name = "scale";
  plan.parameters = {tensor_parameter("x", f32, {symbol(0)}), tensor_parameter("y", f32, {symbol(0)}),
                     scalar_parameter("a", f32), scalar_parameter("limit", i32)};
  plan.symbols = {shape_symbol("n", 0, 0)};
  plan.sites = {{Site::Kind::Assert, "i < limit", {"scale.py", 12, 5}, {{"i", i64}, {"limit", i32}}}};
  return plan;
}

CpuKernelText scale_text(const std::string& extra = "") {
  return {"scale", kernel_text_head() + kScale + extra, processor_features()};
}

double milliseconds(const std::function<void()>& act) {
  const auto start = std::chrono::steady_clock::now();
  act();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

NDArray ramp(int64_t n) {
  NDArray array = NDArray::empty({n}, f32);
  for (int64_t i = 0; i < n; ++i) static_cast<float*>(array.data())[i] = static_cast<float>(i);
  return array;
}

TEST(CpuKernel, RunsAndReportsTheFirstFailedAssertion) {
  const Scratch scratch;
  const ScopedVariable cache("TILEWRIGHT_CACHE_DIR", (scratch / "cache").c_str());
  const Executable scale = make_executable(scale_plan(), build_cpu_kernel(scale_text()), "cpu", kScale);
  const NDArray x = ramp(1000), y = NDArray::zeros({1000}, f32);
  scale(x, y, 0.5, 1000);
  for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(static_cast<float*>(y.data())[i], 0.5f * static_cast<float>(i));
  expect_refusal(Code::AssertionFailed,
                 "scale: assertion failed in block (5, 0, 0), thread (60, 0, 0): i < limit (i = 700, limit = 700)",
                 [&] { scale(x, y, 0.5, 700); });
  EXPECT_EQ(scale.name(), "scale");
  EXPECT_EQ(scale.engine(), "cpu");
  EXPECT_EQ(scale.source(), kScale);
}

TEST(CpuKernel, NoElementsNoLaunch) {
  LaunchPlan plan = scale_plan();
  struct Never : Callee {
    void run(const BoundCall&, CallReport&) override { ADD_FAILURE() << "launched"; }
  };
  const Executable scale = make_executable(plan, std::make_unique<Never>(), "cpu", "");
  scale(NDArray::zeros({0}, f32), NDArray::zeros({0}, f32), 1.0, 0);
}

TEST(CpuKernel, ComesFromCompilerThenDiskThenMemory) {
  const Scratch scratch;
  const ScopedVariable cache("TILEWRIGHT_CACHE_DIR", (scratch / "cache").c_str());
  KernelOrigin origin;
  host_compiler();
  const double cold = milliseconds([&] { build_cpu_kernel(scale_text(), &origin); });
  EXPECT_EQ(origin, KernelOrigin::Compiler);
  std::unique_ptr<Callee> kept;
  const double disk = milliseconds([&] { kept = build_cpu_kernel(scale_text(), &origin); });
  EXPECT_EQ(origin, KernelOrigin::Disk);
  const double memory = milliseconds([&] { build_cpu_kernel(scale_text(), &origin); });
  EXPECT_EQ(origin, KernelOrigin::Memory);
  std::printf("kernel load: compiler %.1f ms, disk %.2f ms, memory %.3f ms\n", cold, disk, memory);
}

TEST(CpuKernel, ManyKernelsInOneProcessAreNotMistakenForEachOther) {
  const Scratch scratch;
  const ScopedVariable cache("TILEWRIGHT_CACHE_DIR", (scratch / "cache").c_str());
  std::vector<std::unique_ptr<Callee>> kernels;
  LaunchPlan plan;
  plan.name = "constant";
  plan.parameters = {tensor_parameter("y", i32, {constant(1)})};
  for (int i = 0; i < 4; ++i)
    kernels.push_back(build_cpu_kernel(
        {"constant",
         kernel_text_head() +
             fmt::format(
                 "extern \"C\" int tw_entry(const struct tw_call* c) {{ *(int*)c->buffers[0] = {}; return 0; }}", i),
         {}}));
  for (int i = 0; i < 4; ++i) {
    const Executable constant = make_executable(plan, std::move(kernels[static_cast<size_t>(i)]), "cpu", "");
    const NDArray y = NDArray::zeros({1}, i32);
    constant(y);
    EXPECT_EQ(*static_cast<int32_t*>(y.data()), i);
  }
}

TEST(CpuKernel, DamagedEntryIsCompiledAnewWithOneWarning) {
  const Scratch scratch;
  const ScopedVariable cache("TILEWRIGHT_CACHE_DIR", (scratch / "cache").c_str());
  KernelOrigin origin;
  build_cpu_kernel(scale_text("// damaged\n"), &origin);
  for (const auto& file : std::filesystem::directory_iterator(scratch / "cache")) {
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(3000);
    stream.put('?');
  }
  const CaughtWarnings warnings;
  build_cpu_kernel(scale_text("// damaged\n"), &origin);
  EXPECT_EQ(origin, KernelOrigin::Compiler);
  EXPECT_EQ(warnings.count(Code::CacheEntryDamaged), 1);
  build_cpu_kernel(scale_text("// damaged\n"), &origin);
  EXPECT_EQ(origin, KernelOrigin::Disk);
}

TEST(CpuKernel, ThrowingPrintSinkDoesNotCrossTheKernel) {
  const Scratch scratch;
  const ScopedVariable cache("TILEWRIGHT_CACHE_DIR", (scratch / "cache").c_str());
  LaunchPlan plan;
  plan.name = "say";
  plan.parameters = {tensor_parameter("y", i32, {constant(1)})};
  plan.sites = {{Site::Kind::PrintMessage, "hello", {}, {}}};
  const Executable say =
      make_executable(plan,
                      build_cpu_kernel({"say",
                                        kernel_text_head() + R"(extern "C" int tw_entry(const struct tw_call* c) {
  const long long place[6] = {};
  c->report(c->host, 0, place, 0, 0);
  return 0;
})",
                                        {}}),
                      "cpu", "");
  const PrintSink before = replace_print_sink([](std::string_view) { throw std::runtime_error("full"); });
  EXPECT_THROW(say(NDArray::zeros({1}, i32)), std::runtime_error);
  std::string line;
  replace_print_sink([&](std::string_view text) { line = text; });
  say(NDArray::zeros({1}, i32));
  replace_print_sink(before);
  EXPECT_EQ(line, "msg='hello' BlockIdx=(0, 0, 0), ThreadIdx=(0, 0, 0)\n");
}

TEST(CpuKernel, WhatTheLinkerRefusesIsACodedError) {
  expect_refusal(Code::KernelNotLoadable, "kernel 'k' cannot be loaded: file too short",
                 [] { SharedObject("no object", "k"); });
  const Scratch scratch;
  const ScopedVariable cache("TILEWRIGHT_CACHE_DIR", (scratch / "cache").c_str());
  const std::string text = kernel_text_head() +
                           "extern \"C\" __attribute__((visibility(\"default\"))) int missing();\n"
                           "extern \"C\" int tw_entry(const struct tw_call*) { return missing(); }";
  expect_refusal(Code::KernelNotLoadable, "kernel 'k' cannot be loaded: undefined symbol: missing", [&] {
    build_cpu_kernel({"k", text, {}});
  });
}

TEST(CpuKernel, NoPlaceForTheCompilersFiles) {
  const Scratch scratch;
  const ScopedVariable cache("TILEWRIGHT_CACHE_DIR", (scratch / "cache").c_str());
  const ScopedVariable temporary("TMPDIR", (scratch / "none").c_str());
  expect_refusal(Code::ScratchDirectory,
                 fmt::format("cannot make a directory in {}: No such file or directory", scratch / "none"), [] {
                   build_cpu_kernel({"k", "int x;", {}});
                 });
}

TEST(CpuKernel, ThreadsFromTheEnvironment) {
  const ScopedVariable two("TILEWRIGHT_THREADS", "2");
  EXPECT_EQ(kernel_threads(), 2);
  const ScopedVariable none("TILEWRIGHT_THREADS", "many");
  expect_refusal(Code::SettingInvalid, "TILEWRIGHT_THREADS is 'many', which is no number of threads",
                 [] { kernel_threads(); });
}

}  // namespace
}  // namespace tilewright::runtime
