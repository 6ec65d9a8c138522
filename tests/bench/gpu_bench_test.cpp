// What measures on a device, with stand-ins for the driver and for cuBLAS: it times what it says, compares all
// elements, and does not believe a device that computes nothing.
#include <gtest/gtest.h>

#include <thread>

#include "compare.h"
#include "compile_times.h"
#include "example.h"
#include "gemm_sweep.h"
#include "programs.h"
#include "runtime/cuda_test_driver.h"
#include "runtime/nvrtc.h"

namespace bench::gpu {
namespace {

using namespace tilewright;
using runtime::cuda::FakeDriver;

NDArray ramp(int64_t n, DType type) {
  const NDArray a = NDArray::zeros({n}, type);
  for (int64_t i = 0; i < n; ++i) a.set_float({i}, 1 + static_cast<double>(i % 7));
  return a;
}

TEST(GpuBench, OneWrongElementIsFound) {
  const NDArray want = ramp(5000, f32), got = want.clone();
  EXPECT_TRUE(compare_stretches(got, want, 0).same_bits);
  EXPECT_TRUE(compare_stretches(got, want, 0).ok());
  got.set_float({3000}, 0);
  const Agreement wrong = compare_stretches(got, want, 1e-2);
  EXPECT_TRUE(wrong.first_bad.starts_with("elements from 2048 on are off")) << wrong.first_bad;
  got.set_float({3000}, want.get_float({3000}) * (1 + 1e-6));
  EXPECT_TRUE(compare_stretches(got, want, 1e-2).ok());
  got.set_float({3000}, std::nan(""));
  EXPECT_FALSE(compare_stretches(got, want, 1e-2).ok());
  want.set_float({3000}, std::nan(""));  // neither has written it
  got.set_float({10}, want.get_float({10}) * (1 + 1e-6));
  EXPECT_TRUE(compare_stretches(got, want, 1e-2).ok());
  got.set_float({3000}, 1);
  EXPECT_FALSE(compare_stretches(got, want, 1e-2).ok());
  const NDArray counts = ramp(100, i32), other = counts.clone();
  other.set_int({41}, 77);
  EXPECT_EQ(compare_stretches(other, counts, 1).first_bad, "element 41 is 77 instead of 7");
}

TEST(GpuBench, ElementsHaveBoundsOfTheirOwn) {
  const NDArray want = ramp(70000, f32), got = want.clone();
  got.set_float({69999}, want.get_float({69999}) + 0.5);
  const auto bound = [](double last) { return [=](int64_t i, double) { return i == 69999 ? last : 0.1; }; };
  EXPECT_TRUE(compare_elements(got, want, bound(0.6)).ok());
  EXPECT_NEAR(compare_elements(got, want, bound(0.6)).share, 0.5 / 0.6, 1e-12);
  EXPECT_TRUE(compare_elements(got, want, bound(0.4)).first_bad.starts_with("element 69999 is "));
}

TEST(GpuBench, RaceTimesEachContestantAfterAFlush) {
  FakeDriver driver;
  int fast = 0, slow = 0, unflushed = 0;
  size_t seen = 0;
  const auto look = [&] {
    const auto& calls = driver->calls;
    const auto flush = std::find(calls.begin() + static_cast<std::ptrdiff_t>(seen), calls.end(), "cuMemsetD8Async");
    unflushed += flush == calls.end(), seen = calls.size();
  };
  const auto sleep = [](int microseconds) { std::this_thread::sleep_for(std::chrono::microseconds(microseconds)); };
  const std::vector<Times> times =
      race({{"fast", [&] { ++fast, look(), sleep(1000); }}, {"slow", [&] { ++slow, look(), sleep(3000); }}}, 10);
  EXPECT_EQ(unflushed, 0);
  EXPECT_EQ(fast, slow) << "in turns";
  EXPECT_GE(fast, 1 + 10 + 10);
  for (const double t : {times[0].burst, times[0].sustained}) EXPECT_GE(t, 1e-3);
  for (const double t : {times[1].burst, times[1].sustained}) EXPECT_GE(t, 3e-3);
}

TEST(GpuBench, CompilingIsTimedInAProcessOfItsOwn) {
  try {
    runtime::Nvrtc::get();
  } catch (const CompileError& e) {
    GTEST_SKIP() << e.what();
  }
  FakeDriver driver;
  const int before = driver.count("cuModuleLoadData");
  const Json rows = compile_times({{"cumsum"}});
  ASSERT_EQ(rows.size(), 1u);
  const Json& row = rows[0];
  ASSERT_FALSE(row.contains("bad")) << row.dump();
  EXPECT_GT(row["passes_ms"], 0);
  EXPECT_GT(row["cold_ms"], 5 * row["disk_ms"].get<double>()) << "with the device compiler, and without";
  EXPECT_EQ(driver.count("cuModuleLoadData"), before) << "in this process nothing was loaded";
}

TEST(GpuBench, CopiesCopyAndALaunchCosts) {
  FakeDriver driver;
  const Copies copies(1 << 20);
  const int before = driver.count("cuMemcpyDtoDAsync");
  copies.by_driver(1 << 16).call();
  EXPECT_EQ(driver.count("cuMemcpyDtoDAsync"), before + 1);
  driver->parameter_bytes = {8, 8, 8};
  copies.by_kernel(1 << 16).call();
  ASSERT_EQ(driver->launches.size(), 1u);
  EXPECT_EQ(driver->launches[0].function, "copy16");
  EXPECT_EQ(driver->launches[0].config.grid[0], 2u) << "2^13 floats, 2^12 a block";
  driver->parameter_bytes.clear();
  const LaunchCost cost = launch_cost();
  EXPECT_GT(cost.ours, 0);
  EXPECT_GT(cost.driver, 0);
}

TEST(GpuBench, ReadsTilesAndForms) {
  EXPECT_EQ(GemmTiles::parse("128x256x64:4:256").text(), "128x256x64:4:256");
  EXPECT_EQ(GemmTiles::parse("64x32x16").text(), "64x32x16:3:128");
  for (const char* bad : {"", "128", "128x128", "128x128x0", "128x128x64:x", "1x1x1:1:1:1"})
    EXPECT_THROW(GemmTiles::parse(bad), std::invalid_argument) << bad;
  const Product p = product_of("e4m3:nt", "128x7168x2048");
  EXPECT_EQ(p, (Product{128, 7168, 2048, e4m3, bf16, false, true}));
  EXPECT_EQ(product_of("i8:tn", "1x2x3").output, i32);
  for (const char* bad : {"bf16", "bf16:nx", "bf16:n", "word:nn"})
    EXPECT_THROW(product_of(bad, "1x2x3"), std::invalid_argument) << bad;
  EXPECT_THROW(product_of("bf16:nn", "1x2"), std::invalid_argument);
}

// For all orders in memory: sums in float32 lie within it, a missing product does not.
TEST(GpuBench, BoundOfAProductSeparatesRightFromWrong) {
  for (const char* order : {"nn", "nt", "tn", "tt"}) {
    const Product p = product_of(std::string("f32:") + order, "17x33x129");
    const auto matrix = [](int64_t rows, int64_t columns, uint64_t seed) {
      return NDArray(examples::input_array({rows, columns}, f32, seed, examples::Data::Normal));
    };
    const NDArray a = p.transpose_a ? matrix(p.k, p.m, 1) : matrix(p.m, p.k, 1);
    const NDArray b = p.transpose_b ? matrix(p.n, p.k, 2) : matrix(p.k, p.n, 2);
    const GemmBound bound(p, a, b);
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        float sum = 0;
        double exact = 0, last = 0;
        for (int64_t k = 0; k < p.k; ++k) {
          const double x = p.transpose_a ? a.get_float({k, i}) : a.get_float({i, k});
          const double y = p.transpose_b ? b.get_float({j, k}) : b.get_float({k, j});
          sum += static_cast<float>(x) * static_cast<float>(y), exact += last = x * y;
        }
        const double most = bound(i * p.n + j, exact);
        ASSERT_LE(std::abs(sum - exact), most) << order;
        ASSERT_TRUE(std::abs(last) > most || std::abs(last) < 1e-2) << order << " " << last << " " << most;
      }
  }
}

TEST(GpuBench, PeerIsCalledForEveryOrderInMemory) {
  FakeDriver driver;
  std::string problem;
  EXPECT_EQ(Blas::find("/nonexistent", problem), nullptr);
  EXPECT_NE(problem.find("/nonexistent/libcublasLt.so"), std::string::npos) << problem;
  const auto blas = Blas::find(TILEWRIGHT_FAKE_CUBLAS, problem);
  ASSERT_TRUE(blas) << problem;
  EXPECT_EQ(blas->version(), "cuBLAS 13.1.2");
  GemmSweep what;
  what.forms = {"f32:nn", "f32:nt", "f32:tn", "f32:tt"}, what.shapes = {"17x33x65"}, what.tiles = {"16x32x16:2:128"};
  int failures = 0;
  const auto rows = sweep(what, blas.get(), 1, failures);
  // The device computes nothing, so our products are wrong, all of them; the peers' are checked and right.
  EXPECT_EQ(failures, 4);
  ASSERT_EQ(rows.size(), 12u);
  for (const auto& row : rows) {
    const bool peer = row["tiles"].get<std::string>().starts_with("cuBLAS");
    EXPECT_EQ(row.contains("bad"), !peer) << row.dump();
    EXPECT_EQ(row.contains("sustained"), peer) << row.dump();
  }
}

TEST(GpuBench, ADeviceThatComputesNothingIsFoundOut) {
  FakeDriver driver;
  int failures = 0;
  const Json rows = programs({.selection = {{"sinkhorn"}}, .turns = 1, .full = false}, nullptr, failures);
  EXPECT_GT(rows.size(), 4u);
  EXPECT_EQ(static_cast<size_t>(failures), rows.size());
  for (const auto& row : rows) EXPECT_TRUE(row.contains("bad") && !row.contains("burst")) << row.dump();
}

}  // namespace
}  // namespace bench::gpu
