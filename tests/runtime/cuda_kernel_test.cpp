// CUDA programs up to the driver's door: what a call puts on a stream, through a stand-in for the driver's library.
#include "runtime/cuda_kernel.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/cuda_module.h"
#include "runtime/cuda_report.h"
#include "runtime/cuda_tensor_map.h"
#include "runtime/cuda_test_driver.h"
#include "runtime/scratch.h"
#include "tilewright/cuda.h"

namespace tilewright::runtime::cuda {
namespace {

constexpr Device kCuda0{2, 0}, kCuda1{2, 1};

LaunchPlan cuda_matmul_plan() {
  LaunchPlan plan = matmul_plan();
  plan.memory = LaunchPlan::Memory::Cuda;
  return plan;
}

// A map of a row-major matrix of `rows` x `columns`, 64 x 64 at a time.
TensorMapPlan matrix_map(std::string name, int buffer, IntProgram rows, IntProgram columns) {
  TensorMapPlan map;
  map.name = std::move(name), map.buffer = buffer, map.dtype = f16;
  map.dims = {columns, rows};
  map.strides = {columns};
  map.box = {64, 64};
  map.swizzle = TensorMapPlan::Swizzle::Bytes128;
  return map;
}

// A[M, K] and B[K, N] by TMA, C by pointer, then M and K * N, on ceil(N / 128) x ceil(M / 64) blocks.
KernelLaunch matmul_launch() {
  KernelLaunch launch;
  launch.function = "matmul";
  const auto blocks = [](const IntProgram& extent, int64_t tile) {
    return combine(IntOp::Kind::FloorDiv, combine(IntOp::Kind::Add, extent, constant(tile - 1)), constant(tile));
  };
  launch.grid = {blocks(symbol(2), 128), blocks(symbol(0), 64), constant(1)};
  launch.block = {384, 1, 1};
  launch.dynamic_shared_bytes = 100000;
  launch.parameters = {TensorMapParameter{0}, BufferParameter{2}, ValueParameter{symbol(0), 4}, TensorMapParameter{1},
                       ValueParameter{combine(IntOp::Kind::Mul, symbol(1), symbol(2)), 8}};
  return launch;
}

CudaKernelText kernel_text(std::vector<KernelLaunch> launches, std::vector<TensorMapPlan> maps = {}) {
  return {"matmul_relu", "", "sm_90a", {std::move(maps), std::move(launches)}};
}

CudaKernelText matmul_text() {
  return kernel_text({matmul_launch()},
                     {matrix_map("A", 0, symbol(0), symbol(1)), matrix_map("B", 1, symbol(1), symbol(2))});
}

DeviceBinary fake_cubin() {
  DeviceBinary binary;
  binary.cubin = "\177ELF";
  return binary;
}

Executable load(const CudaKernelText& text, const LaunchPlan& plan) {
  return make_executable(plan, load_cuda(text, fake_cubin(), plan), "cuda", "");
}

struct Matrices {
  NDArray a, b, c;
  Matrices(int64_t m, int64_t n, int64_t k, Device device = kCuda0)
      : a(NDArray::zeros({m, k}, f16, device)),
        b(NDArray::zeros({k, n}, f16, device)),
        c(NDArray::zeros({m, n}, f32, device)) {}
};

template <class T>
T read(const std::vector<char>& bytes) {
  T value;
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

TEST(CudaLaunch, PutsACallOnTheStream) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  EXPECT_EQ(driver->function_settings, (std::vector<std::pair<int, int>>{{8, 100000}}));
  const Matrices x(100, 256, 64);
  driver->parameter_bytes = {128, 8, 4, 128, 8};
  const tilewright::cuda::StreamScope stream(reinterpret_cast<void*>(0x77));
  matmul(x.a, x.b, x.c);
  ASSERT_EQ(driver->launches.size(), 1u);
  const fake_cuda::Launch& launch = driver->launches[0];
  EXPECT_EQ(launch.function, "matmul");
  EXPECT_EQ(launch.config.grid[0], 2u);
  EXPECT_EQ(launch.config.grid[1], 2u);
  EXPECT_EQ(launch.config.grid[2], 1u);
  EXPECT_EQ(launch.config.block[0], 384u);
  EXPECT_EQ(launch.config.dynamic_shared_bytes, 100000u);
  EXPECT_EQ(launch.config.stream, reinterpret_cast<Stream>(0x77));
  EXPECT_TRUE(launch.attributes.empty());
  EXPECT_EQ(read<TensorMap>(launch.parameters[0]).words[0], 1u);
  EXPECT_EQ(read<void*>(launch.parameters[1]), x.c.data());
  EXPECT_EQ(read<int32_t>(launch.parameters[2]), 100);
  EXPECT_EQ(read<TensorMap>(launch.parameters[3]).words[0], 2u);
  EXPECT_EQ(read<int64_t>(launch.parameters[4]), 64 * 256);
  for (size_t map : {0u, 3u}) EXPECT_EQ(reinterpret_cast<uintptr_t>(launch.parameter_places[map]) % 64, 0u);
}

TEST(CudaLaunch, EncodesTensorMaps) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  const Matrices x(100, 256, 64);
  matmul(x.a, x.b, x.c);
  ASSERT_EQ(driver->maps.size(), 2u);
  const fake_cuda::EncodedMap& b = driver->maps[1];
  EXPECT_EQ(b.type, 6);  // FLOAT16
  EXPECT_EQ(b.address, reinterpret_cast<uint64_t>(x.b.data()));
  EXPECT_EQ(b.dims, (std::vector<uint64_t>{256, 64}));
  EXPECT_EQ(b.strides, (std::vector<uint64_t>{512}));
  EXPECT_EQ(b.box, (std::vector<unsigned>{64, 64}));
  EXPECT_EQ(b.element_strides, (std::vector<unsigned>{1, 1}));
  EXPECT_EQ(b.swizzle, 3);
  EXPECT_EQ(b.interleave, 0);
  EXPECT_GE(b.l2_promotion, 2);  // by where its rows lie
  EXPECT_EQ(b.oob_fill, 0);
}

// 256 bytes a miss are of use where rows are whole lines of the L2 cache.
TEST(CudaLaunch, PromotesRowsOfWholeLines) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  const Matrices whole(100, 32768, 64), part(100, 32776, 64);  // large ones lie on pages
  matmul(whole.a, whole.b, whole.c);
  matmul(part.a, part.b, part.c);
  ASSERT_EQ(driver->maps.size(), 4u);
  EXPECT_EQ(driver->maps[1].strides, (std::vector<uint64_t>{65536}));
  EXPECT_EQ(driver->maps[1].l2_promotion, 3);
  EXPECT_EQ(driver->maps[3].strides, (std::vector<uint64_t>{65552}));
  EXPECT_EQ(driver->maps[3].l2_promotion, 2);
}

TEST(CudaLaunch, KeepsTensorMapsByAddressAndShape) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  const Matrices x(100, 256, 64), y(100, 256, 64);
  matmul(x.a, x.b, x.c);
  matmul(x.a, x.b, x.c);
  EXPECT_EQ(driver->maps.size(), 2u);
  matmul(y.a, x.b, x.c);
  EXPECT_EQ(driver->maps.size(), 3u);
  matmul(x.a, x.b, x.c);
  const size_t before = driver->maps.size();  // unless the two addresses took each other's place
  EXPECT_LE(before, 4u);
  // Same address, another shape.
  const NDArray half = NDArray::borrow(x.a.data(), {{50, 64}}, f16, {}, 0, {}, kCuda0);
  const NDArray c = NDArray::zeros({50, 256}, f32, kCuda0);
  matmul(half, x.b, c);
  ASSERT_EQ(driver->maps.size(), before + 1);
  EXPECT_EQ(driver->maps.back().dims, (std::vector<uint64_t>{64, 50}));
}

TEST(CudaLaunch, MapsEmptyBuffersToZeros) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  const Matrices x(100, 256, 0);
  matmul(x.a, x.b, x.c);  // K = 0: C is still written
  ASSERT_EQ(driver->maps.size(), 2u);
  for (const fake_cuda::EncodedMap& map : driver->maps) {
    EXPECT_EQ(map.dims, (std::vector<uint64_t>{1, 1}));
    EXPECT_EQ(map.strides[0] % 16, 0u);
    const char* zeros = reinterpret_cast<const char*>(map.address);
    EXPECT_TRUE(std::all_of(zeros, zeros + 16, [](char c) { return c == 0; }));
  }
}

TEST(CudaLaunch, SetsAttributes) {
  FakeDriver driver;
  KernelLaunch launch = matmul_launch();
  launch.parameters = {};
  launch.cluster = {2, 1, 1};
  launch.cooperative = true;
  launch.programmatic_serialization = true;
  driver->parameter_bytes = {0};
  launch.parameters = {BufferParameter{0}};
  load(kernel_text({launch}), cuda_matmul_plan())(Matrices(64, 256, 64).a, Matrices(64, 256, 64).b,
                                                  Matrices(64, 256, 64).c);
  ASSERT_EQ(driver->launches.size(), 1u);
  const std::vector<LaunchAttribute>& a = driver->launches[0].attributes;
  ASSERT_EQ(a.size(), 3u);
  EXPECT_EQ(a[0].id, LaunchAttribute::Id::ClusterDimension);
  EXPECT_EQ(a[0].value[0], 2u);
  EXPECT_EQ(a[0].value[2], 1u);
  EXPECT_EQ(a[1].id, LaunchAttribute::Id::Cooperative);
  EXPECT_EQ(a[1].value[0], 1u);
  EXPECT_EQ(a[2].id, LaunchAttribute::Id::ProgrammaticStreamSerialization);
  EXPECT_EQ(a[2].value[0], 1u);
}

TEST(CudaLaunch, AsksForLargeClusters) {
  FakeDriver driver;
  KernelLaunch launch = matmul_launch();
  launch.parameters = {};
  launch.cluster = {16, 1, 1};
  launch.dynamic_shared_bytes = 0;
  load(kernel_text({launch}), cuda_matmul_plan());
  EXPECT_EQ(driver->function_settings, (std::vector<std::pair<int, int>>{{14, 1}}));
}

TEST(CudaLaunch, RunsNothingOnAnEmptyGrid) {
  FakeDriver driver;
  KernelLaunch none = matmul_launch(), one = matmul_launch();
  none.parameters = one.parameters = {BufferParameter{0}};
  none.grid[2] = constant(0);
  one.function = "second";
  driver->parameter_bytes = {8};
  const Matrices x(64, 128, 64);
  load(kernel_text({none, one}), cuda_matmul_plan())(x.a, x.b, x.c);
  ASSERT_EQ(driver->launches.size(), 1u);
  EXPECT_EQ(driver->launches[0].function, "second");
}

TEST(CudaLaunch, RefusesImpossibleGrids) {
  FakeDriver driver;
  KernelLaunch launch = matmul_launch();
  launch.parameters = {};
  const Matrices x(64, 128, 64);
  const auto refuse = [&](IntProgram y, int cluster, const std::string& message) {
    launch.grid[1] = std::move(y), launch.cluster[1] = cluster;
    expect_refusal(Code::LaunchGridInvalid, message,
                   [&] { load(kernel_text({launch}), cuda_matmul_plan())(x.a, x.b, x.c); });
  };
  refuse(constant(65536), 1,
         "matmul_relu: kernel 'matmul' has 65536 blocks in dimension 1 of its grid, but must have 0 to 65535");
  refuse(constant(-1), 1,
         "matmul_relu: kernel 'matmul' has -1 blocks in dimension 1 of its grid, but must have 0 to 65535");
  refuse(constant(3), 2,
         "matmul_relu: kernel 'matmul' has 3 blocks in dimension 1 of its grid, but must have 0 to 65535 in clusters "
         "of 2");
  refuse(
      combine(IntOp::Kind::FloorDiv, symbol(0), constant(0)), 1,
      "matmul_relu: kernel 'matmul' has an impossible number of blocks in dimension 1 of its grid, but must have 0 to "
      "65535");
}

TEST(CudaLaunch, RefusesValuesThatDoNotFit) {
  FakeDriver driver;
  KernelLaunch launch = matmul_launch();
  const auto value = [&](IntProgram v, int bytes) {
    launch.parameters = {ValueParameter{std::move(v), bytes}};
    driver->launches.clear();
    driver->parameter_bytes = {bytes};
    const Matrices x(64, 128, 64);
    load(kernel_text({launch}), cuda_matmul_plan())(x.a, x.b, x.c);
    return driver->launches.at(0).parameters[0];
  };
  EXPECT_EQ(read<int32_t>(value(constant(-2147483648ll), 4)), -2147483648ll);
  EXPECT_EQ(read<uint32_t>(value(constant(4294967295), 4)), 4294967295u);
  EXPECT_EQ(read<int64_t>(value(constant(4294967296), 8)), 4294967296);
  expect_refusal(Code::LaunchValueRange,
                 "matmul_relu: parameter 0 of kernel 'matmul' is 4294967296, which does not fit 32 bits",
                 [&] { value(constant(4294967296), 4); });
  expect_refusal(Code::LaunchValueRange, "matmul_relu: parameter 0 of kernel 'matmul' has no value in 64 bits",
                 [&] { value(combine(IntOp::Kind::Mul, constant(1ll << 62), constant(4)), 8); });
}

TEST(CudaLaunch, RefusesSizesThatTmaCannotWalk) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  const Matrices odd(64, 128, 60);  // rows of 120 bytes
  expect_refusal(Code::TensorMapInvalid,
                 "matmul_relu: no tensor map of 'A': the stride of its dimension 1 (innermost first) is 60 elements of "
                 "float16",
                 [&] { matmul(odd.a, odd.b, odd.c); });
  const Matrices x(64, 128, 64);
  const NDArray a = NDArray::borrow(x.a.data(), {{63, 64}}, f16, {}, 8, {}, kCuda0);
  const NDArray c = NDArray::zeros({63, 128}, f32, kCuda0);
  expect_refusal(Code::TensorMapInvalid,
                 "matmul_relu: no tensor map of 'A': its address lies 8 bytes past a multiple of 16",
                 [&] { matmul(a, x.b, c); });
  // One row: its stride is never walked.
  const Matrices row(1, 128, 60);
  const Matrices b(60, 128, 60);
  EXPECT_NO_THROW(matmul(row.a, b.b, row.c));
}

TEST(CudaLaunch, TellsWhatTheDriverRefuses) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  const Matrices x(64, 128, 64);
  driver->failing = "cuTensorMapEncodeTiled", driver->failing_result = kInvalidValue;
  try {
    matmul(x.a, x.b, x.c);
    FAIL();
  } catch (const LaunchError& e) {
    EXPECT_EQ(e.diagnostic().code, static_cast<uint16_t>(Code::TensorMapInvalid));
    EXPECT_NE(e.diagnostic().message.find("CUDA_ERROR_INVALID_VALUE: something is wrong"), std::string::npos)
        << e.what();
    EXPECT_NE(e.diagnostic().message.find("dims (64, 64), strides (128) bytes, box (64, 64), float16, swizzle 3"),
              std::string::npos)
        << e.what();
  }
  driver->failing = "cuLaunchKernelEx", driver->failing_result = 700;
  expect_refusal(Code::CudaCallFailed,
                 "cannot launch kernel 'matmul' of 'matmul_relu': CUDA_ERROR_ILLEGAL_ADDRESS: something is wrong",
                 [&] { matmul(x.a, x.b, x.c); });
  driver->failing_result = 999;
  expect_refusal(Code::CudaCallFailed, "cannot launch kernel 'matmul' of 'matmul_relu': error 999",
                 [&] { matmul(x.a, x.b, x.c); });
}

TEST(CudaLaunch, RefusesDevicesThatDoNotFit) {
  FakeDriver driver;
  driver->static_shared_bytes = 1024;
  KernelLaunch launch = matmul_launch();
  launch.dynamic_shared_bytes = 232448;
  expect_refusal(Code::CudaDeviceUnfit,
                 "matmul_relu: a block of kernel 'matmul' takes 233472 bytes of shared memory, but cuda:0 (Fake H200) "
                 "gives at most 232448",
                 [&] { load(kernel_text({launch}, matmul_text().plan.tensor_maps), cuda_matmul_plan()); });
  driver->static_shared_bytes = 0, driver->max_threads = 256;
  expect_refusal(
      Code::CudaDeviceUnfit,
      "matmul_relu: a block of kernel 'matmul' has 384 threads, but with its 40 registers cuda:0 (Fake H200) "
      "runs at most 256",
      [&] { load(matmul_text(), cuda_matmul_plan()); });
}

TEST(CudaLaunch, CodeForAnotherArchitectureIsRefusedAtACall) {
  FakeDriver driver;
  const Matrices x(64, 128, 64);
  for (const char* arch : {"sm_100a", "sm_80"}) {
    CudaKernelText other = matmul_text();
    other.arch = arch;
    const Executable matmul = load(other, cuda_matmul_plan());
    expect_refusal(Code::CudaDeviceUnfit,
                   fmt::format("matmul_relu: compiled for {}, but cuda:0 (Fake H200) is sm_90a", arch),
                   [&] { matmul(x.a, x.b, x.c); });
  }
}

TEST(CudaLaunch, RefusesTensorsElsewhere) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  const Matrices x(64, 128, 64), host(64, 128, 64, {}), other(64, 128, 64, kCuda1);
  expect_refusal(Code::ArgumentDevice, "matmul_relu: argument 1 'B' is on cpu, but must be on a CUDA device",
                 [&] { matmul(x.a, host.b, x.c); });
  expect_refusal(Code::ArgumentDevice, "matmul_relu: argument 2 'C' is on cuda:1, but 'A' is on cuda:0",
                 [&] { matmul(x.a, x.b, other.c); });
  LaunchPlan plan = matmul_plan();
  struct Nothing final : Callee {
    void run(const BoundCall&, CallReport&) override {}
  };
  const Executable on_cpu = make_executable(plan, std::make_unique<Nothing>(), "cpu", "");
  expect_refusal(Code::ArgumentDevice,
                 "matmul_relu: argument 0 'A' is on cuda:0, but must be in the processor's memory",
                 [&] { on_cpu(x.a, x.b, x.c); });
}

TEST(CudaLaunch, LoadsOnEachDeviceOnce) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  EXPECT_EQ(driver->loads_of_context[0], 1);
  EXPECT_EQ(driver->loads_of_context[1], 0);
  const Matrices x(64, 128, 64, kCuda1);
  for (int i = 0; i < 3; ++i) matmul(x.a, x.b, x.c);
  EXPECT_EQ(driver->loads_of_context[0], 1);
  EXPECT_EQ(driver->loads_of_context[1], 1);
}

TEST(CudaLaunch, IsSafeInThreads) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  const Matrices x(64, 128, 64), y(64, 256, 64, kCuda1);
  driver->parameter_bytes = {128, 8, 4, 128, 8};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Matrices& mine = t % 2 ? x : y;
      for (int i = 0; i < 50; ++i) matmul(mine.a, mine.b, mine.c);
    });
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(driver->launches.size(), 200u);
  for (const fake_cuda::Launch& launch : driver->launches)
    EXPECT_EQ(read<void*>(launch.parameters[1]), launch.config.grid[0] == 1 ? x.c.data() : y.c.data());
}

LaunchPlan plan_with_workspace() {
  LaunchPlan plan = cuda_matmul_plan();
  plan.workspaces = {{"partial", f32, combine(IntOp::Kind::Mul, symbol(0), symbol(2))}};
  return plan;
}

TEST(CudaWorkspace, IsKeptPerStream) {
  FakeDriver driver;
  KernelLaunch launch = matmul_launch();
  launch.parameters = {BufferParameter{3}, BufferParameter{2}};
  const Executable program = load(kernel_text({launch}), plan_with_workspace());
  driver->parameter_bytes = {8, 8};
  const Matrices small(64, 128, 64), large(128, 128, 64);
  const auto run = [&](const Matrices& x, uintptr_t stream) {
    const tilewright::cuda::StreamScope scope(reinterpret_cast<void*>(stream));
    program(x.a, x.b, x.c);
    EXPECT_EQ(read<void*>(driver->launches.back().parameters[1]), x.c.data());
    return read<void*>(driver->launches.back().parameters[0]);
  };
  void* const first = run(small, 1);
  EXPECT_EQ(run(small, 1), first);
  EXPECT_NE(run(small, 2), first);
  void* const grown = run(large, 1);
  EXPECT_NE(grown, first);
  EXPECT_EQ(run(small, 1), grown);
}

TEST(CudaWorkspace, ReportsAreRefusedWhileCapturing) {
  FakeDriver driver;
  LaunchPlan plan = plan_with_workspace();
  plan.sites.resize(1);
  KernelLaunch launch = matmul_launch();
  launch.parameters = {BufferParameter{3}, ReportParameter{}};
  const Executable program = load(kernel_text({launch}), plan);
  const Matrices x(64, 128, 64);
  driver->capturing = true;
  expect_refusal(Code::CaptureForbidden,
                 "a program with prints or assertions cannot be captured: its call waits for them",
                 [&] { program(x.a, x.b, x.c); });
}

// Graphs run beside each other, and beside calls on the stream that captured them.
TEST(CudaWorkspace, EachCapturedCallHasItsOwn) {
  FakeDriver driver;
  KernelLaunch launch = matmul_launch();
  launch.parameters = {BufferParameter{3}};
  const Executable program = load(kernel_text({launch}), plan_with_workspace());
  driver->parameter_bytes = {8};
  const Matrices x(64, 128, 64);
  const auto run = [&] {
    program(x.a, x.b, x.c);
    return read<void*>(driver->launches.back().parameters[0]);
  };
  void* const eager = run();
  driver->capturing = true;
  const int frees = driver->frees;
  void* const first = run();
  void* const second = run();
  EXPECT_EQ(driver->capture_mode, 0);  // as before
  EXPECT_EQ(std::set<void*>({eager, first, second}).size(), 3u);
  driver->capturing = false;
  EXPECT_EQ(run(), eager);
  EXPECT_EQ(driver->frees, frees);
}

TEST(CudaWorkspace, HoldsZerosWhereThePlanSaysSo) {
  FakeDriver driver;
  KernelLaunch launch = matmul_launch();
  launch.parameters = {BufferParameter{3}};
  LaunchPlan plan = plan_with_workspace();
  plan.workspaces[0].zeroed = true;
  const Executable program = load(kernel_text({launch}), plan);
  driver->parameter_bytes = {8};
  const Matrices small(64, 128, 64), large(128, 128, 64);
  const auto all_zeros = [&](const Matrices& x) {
    program(x.a, x.b, x.c);
    const auto* found = static_cast<const float*>(read<void*>(driver->launches.back().parameters[0]));
    return std::all_of(found, found + x.a.shape()[0] * x.b.shape()[1], [](float f) { return f == 0; });
  };
  const auto clears = [&] { return std::ranges::count(driver->calls, "cuMemsetD8Async"); };
  EXPECT_TRUE(all_zeros(small));
  const auto once = clears();
  EXPECT_TRUE(all_zeros(small));
  EXPECT_EQ(clears(), once);  // its launches leave zeros
  EXPECT_TRUE(all_zeros(large));
  driver->capturing = true;
  EXPECT_TRUE(all_zeros(large));
  EXPECT_EQ(clears(), once + 2);
}

TEST(CudaLaunch, IsCapturable) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  const Matrices x(64, 128, 64);
  driver->parameter_bytes = {128};
  driver->calls.clear();
  matmul(x.a, x.b, x.c);
  for (const std::string& call : driver->calls)
    EXPECT_TRUE(call == "cuLaunchKernelEx" || call == "cuTensorMapEncodeTiled" || call == "cuCtxPushCurrent") << call;
}

// What a kernel with a failed assertion at site 0 and a print at site 1 leaves; words are those of cuda_report.text.h.
void report_something(const fake_cuda::Launch& launch) {
  auto* head = read<uint32_t*>(launch.parameters[0]);
  auto* words = reinterpret_cast<uint64_t*>(head + 6);
  const std::vector<uint64_t> reports = {
      1 | 1ull << 32, 2 | 3ull << 32, 4 | 5ull << 32, 6 | 7ull << 32, 42, 0 | 0ull << 32, 1, 0, 0};
  std::copy(reports.begin(), reports.end(), words);
  head[0] = static_cast<uint32_t>(reports.size());
  head[4] = 1;
}

LaunchPlan plan_with_sites() {
  LaunchPlan plan = cuda_matmul_plan();
  Site failure, print;
  failure.kind = Site::Kind::Assert, failure.message = "x is negative";
  print.kind = Site::Kind::PrintScalar, print.message = "n", print.operands = {{"n", i32}};
  plan.sites = {failure, print};
  return plan;
}

Executable reporting_program() {
  KernelLaunch launch = matmul_launch();
  launch.parameters = {ReportParameter{}};
  return load(kernel_text({launch}), plan_with_sites());
}

TEST(CudaReports, ComeBack) {
  FakeDriver driver;
  const Executable program = reporting_program();
  driver->parameter_bytes = {8};
  driver->on_launch = report_something;
  std::string printed;
  const PrintSink before = replace_print_sink([&](std::string_view line) { printed += line; });
  const Matrices x(64, 128, 64);
  expect_refusal(Code::AssertionFailed,
                 "matmul_relu: assertion failed in block (1, 0, 0), thread (0, 0, 0): x is negative",
                 [&] { program(x.a, x.b, x.c); });
  replace_print_sink(before);
  EXPECT_EQ(printed, "msg='n' BlockIdx=(2, 3, 4), ThreadIdx=(5, 6, 7): dtype=int32 value=42\n");
  driver->on_launch = nullptr;
  EXPECT_NO_THROW(program(x.a, x.b, x.c));  // what an earlier call left is gone
}

TEST(CudaReports, SayWhatWasLost) {
  FakeDriver driver;
  CaughtWarnings warnings;
  const Executable program = reporting_program();
  driver->parameter_bytes = {8};
  driver->on_launch = [](const fake_cuda::Launch& launch) {
    auto* head = read<uint32_t*>(launch.parameters[0]);
    head[0] = head[1] + 100, head[2] = 0, head[3] = 7, head[4] = 1;
  };
  const Matrices x(64, 128, 64);
  expect_refusal(Code::AssertionFailed,
                 "matmul_relu: assertion failed in block (0, 0, 0), thread (0, 0, 0): x is negative",
                 [&] { program(x.a, x.b, x.c); });
  EXPECT_EQ(warnings.count(Code::ReportsLost), 1);
}

TEST(CudaReports, CannotBeCaptured) {
  FakeDriver driver;
  const Executable program = reporting_program();
  const Matrices x(64, 128, 64);
  program(x.a, x.b, x.c);
  driver->capturing = true;
  expect_refusal(Code::CaptureForbidden,
                 "a program with prints or assertions cannot be captured: its call waits for them",
                 [&] { program(x.a, x.b, x.c); });
}

TEST(CudaReports, TextCompiles) {
  const std::string text = report_text_head() + R"(
extern "C" __global__ void k(tw_reports* reports, int n) {
  if (unsigned long long* to = tw_report(reports, 1, 1)) to[0] = n;
  if (n < 0) tw_report_failure(reports, 0, 0);
}
)";
  EXPECT_FALSE(Nvrtc::get().compile({"reports", text, "sm_80"}).cubin.empty());
}

TEST(CudaPlan, IsVerified) {
  const LaunchPlan plan = cuda_matmul_plan();
  const auto refused = [&](auto&& spoil) {
    CudaPlan cuda = matmul_text().plan;
    spoil(cuda);
    EXPECT_THROW(verify(cuda, plan), InternalError);
  };
  EXPECT_NO_THROW(verify(matmul_text().plan, plan));
  refused([](CudaPlan& p) { p.tensor_maps[0].box[0] = 65; });   // 130 bytes
  refused([](CudaPlan& p) { p.tensor_maps[0].box[0] = 128; });  // 256 bytes, swizzle 128
  refused([](CudaPlan& p) { p.tensor_maps[0].box[1] = 257; });
  refused([](CudaPlan& p) { p.tensor_maps[0].box.pop_back(); });
  refused([](CudaPlan& p) { p.tensor_maps[0].strides.clear(); });
  refused([](CudaPlan& p) { p.tensor_maps[0].dims.resize(6); });
  refused([](CudaPlan& p) { p.tensor_maps[0].dtype = e2m1; });
  refused([](CudaPlan& p) { p.tensor_maps[0].buffer = 3; });
  refused([](CudaPlan& p) { p.tensor_maps[0].dims[0] = symbol(9); });
  refused([](CudaPlan& p) { p.launches[0].parameters[0] = TensorMapParameter{2}; });
  refused([](CudaPlan& p) { p.launches[0].parameters[0] = BufferParameter{-1}; });
  refused([](CudaPlan& p) { p.launches[0].parameters[0] = ValueParameter{symbol(0), 2}; });
  refused([](CudaPlan& p) { p.launches[0].grid[0] = {}; });
  refused([](CudaPlan& p) { p.launches[0].block[1] = 0; });
  CudaPlan many = matmul_text().plan;
  many.launches[0].parameters.assign(40, TensorMapParameter{0});
  EXPECT_EQ(parameter_bytes(many.launches[0]), 40 * 128);
  expect_refusal(Code::PlanTooLarge,
                 "matmul_relu: kernel 'matmul' takes 40 parameters of 5120 bytes; at most 256 of 4096",
                 [&] { verify(many, plan); });
}

TEST(CudaPlan, LaysParametersOutAsCompilersDo) {
  KernelLaunch launch;
  launch.parameters = {ValueParameter{constant(1), 4}, BufferParameter{0}, ValueParameter{constant(1), 4},
                       TensorMapParameter{0}, ValueParameter{constant(1), 4}};
  EXPECT_EQ(parameter_bytes(launch), 64 + 128 + 4);
}

TEST(CudaCompile, IsCachedWithItsLog) {
  const Scratch scratch;
  const ScopedVariable directory("TILEWRIGHT_CACHE_DIR", scratch.path().c_str());
  CudaKernelText kernel = kernel_text({});
  kernel.text = "extern \"C\" __global__ void k(float* p) { p[threadIdx.x] = 1; }\n";
  KernelOrigin origin;
  const DeviceBinary first = compile_cuda(kernel, &origin);
  EXPECT_EQ(origin, KernelOrigin::Compiler);
  const DeviceBinary second = compile_cuda(kernel, &origin);
  EXPECT_EQ(origin, KernelOrigin::Disk);
  EXPECT_EQ(second.cubin, first.cubin);
  EXPECT_EQ(second.log.text, first.log.text);
  EXPECT_EQ(second.log.kernels, first.log.kernels);
  EXPECT_EQ(second.milliseconds, first.milliseconds);
  kernel.arch = "sm_80";
  EXPECT_NE(compile_cuda(kernel, &origin).cubin, first.cubin);
  EXPECT_EQ(origin, KernelOrigin::Compiler);
  kernel.more_options = {"-lineinfo"};
  compile_cuda(kernel, &origin);
  EXPECT_EQ(origin, KernelOrigin::Compiler);
  kernel.text += "// another\n";
  compile_cuda(kernel, &origin);
  EXPECT_EQ(origin, KernelOrigin::Compiler);
}

TEST(CudaDriver, IsMissing) {
  const ScopedVariable library("TILEWRIGHT_LIBCUDA", "/nowhere/libcuda.so.1");
  EXPECT_EQ(tilewright::cuda::device_count(), 0);
  try {
    CudaDevice::get(0);
    FAIL();
  } catch (const LaunchError& e) {
    EXPECT_EQ(e.diagnostic().code, static_cast<uint16_t>(Code::CudaDriverMissing));
    EXPECT_NE(e.diagnostic().message.find("/nowhere/libcuda.so.1"), std::string::npos) << e.what();
    EXPECT_NE(e.diagnostic().help.find("install NVIDIA's driver"), std::string::npos);
  }
}

TEST(CudaDriver, IsAnotherLibrary) {
  const ScopedVariable library("TILEWRIGHT_LIBCUDA", "libm.so.6");
  try {
    Driver::get();
    FAIL();
  } catch (const LaunchError& e) {
    EXPECT_EQ(e.diagnostic().code, static_cast<uint16_t>(Code::CudaDriverTooOld));
    EXPECT_NE(e.diagnostic().message.find("has no cuInit"), std::string::npos) << e.what();
  }
}

TEST(CudaDevice, TellsItsProperties) {
  FakeDriver driver;
  const CudaDevice& device = CudaDevice::get(0);
  EXPECT_EQ(device.properties.name, "Fake H200");
  EXPECT_EQ(device.properties.arch(), "sm_90a");
  EXPECT_EQ(device.properties.sm_count, 132);
  EXPECT_EQ(device.properties.shared_bytes_per_block, 232448);
  EXPECT_EQ(device.properties.memory_bytes, int64_t{1} << 37);
  EXPECT_EQ(&CudaDevice::get(0), &device);
  DeviceProperties ampere;
  ampere.compute_major = 8;
  EXPECT_EQ(ampere.arch(), "sm_80");
  expect_refusal(Code::CudaDeviceMissing, "there is no cuda:2: the driver has 2 devices", [] { CudaDevice::get(2); });
  expect_refusal(Code::CudaDeviceMissing, "there is no cuda:-1: the driver has 2 devices", [] { CudaDevice::get(-1); });
}

TEST(CudaDevice, LeavesTheContextAsItWas) {
  FakeDriver driver;
  const CudaDevice &zero = CudaDevice::get(0), &one = CudaDevice::get(1);
  Context current = nullptr;
  const auto now = [&] { return zero.driver.context_get(&current), current; };
  {
    const ScopedDevice outer(zero);
    EXPECT_EQ(now(), zero.context);
    driver->calls.clear();
    {
      const ScopedDevice again(zero);
      EXPECT_EQ(driver.count("cuCtxPushCurrent"), 0);
      const ScopedDevice inner(one);
      EXPECT_EQ(now(), one.context);
    }
    EXPECT_EQ(now(), zero.context);
  }
  EXPECT_EQ(now(), nullptr);
}

TEST(CudaDevice, MeasuresTime) {
  FakeDriver driver;
  Timer timer(CudaDevice::get(0));
  timer.start(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  timer.stop(nullptr);
  EXPECT_GE(timer.milliseconds(), 5);
}

TEST(CudaLaunch, CostsLittle) {
  FakeDriver driver;
  const Executable matmul = load(matmul_text(), cuda_matmul_plan());
  const Matrices x(100, 256, 64);
  const ScopedDevice scope(CudaDevice::get(0));  // as in a thread that uses PyTorch
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    constexpr int kCalls = 1000;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) matmul(x.a, x.b, x.c);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count() / kCalls);
  }
  RecordProperty("microseconds", std::to_string(best));
  std::printf("a call with three tensors, two tensor maps: %.3f us of ours\n", best);
  EXPECT_LT(best, 5) << "0.3 us on an idle machine; the bound allows for a sanitizer";
}

}  // namespace
}  // namespace tilewright::runtime::cuda
