// On a device: what the stand-in for the driver cannot show. Skipped where there is none; `Gpu*` names them all, so
// that a run without them leaves nothing out silently.
#include <gtest/gtest.h>

#include <chrono>

#include "runtime/cuda_kernel.h"
#include "runtime/cuda_report.h"
#include "runtime/plans.h"
#include "tilewright/cuda.h"

namespace tilewright::runtime::cuda {
namespace {

constexpr Device kCuda0{2, 0};

class Gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no CUDA device";
  }
};

// y[n] = a * x[n] in one launch of 256 threads a block.
LaunchPlan scale_plan() {
  LaunchPlan plan;
  plan.name = "scale";
  plan.memory = LaunchPlan::Memory::Cuda;
  plan.parameters = {tensor_parameter("x", f32, {symbol(0)}), tensor_parameter("y", f32, {symbol(0)}),
                     scalar_parameter("a", f32)};
  plan.symbols = {shape_symbol("n", 0, 0)};
  return plan;
}

KernelLaunch scale_launch() {
  KernelLaunch launch;
  launch.function = "scale";
  launch.grid = {combine(IntOp::Kind::FloorDiv, combine(IntOp::Kind::Add, symbol(0), constant(255)), constant(256)),
                 constant(1), constant(1)};
  launch.block = {256, 1, 1};
  launch.parameters = {BufferParameter{0}, BufferParameter{1}, ValueParameter{scalar(0), 4},
                       ValueParameter{symbol(0), 8}};
  return launch;
}

Executable build(const std::string& text, LaunchPlan plan, CudaPlan cuda) {
  const CudaKernelText kernel{plan.name, text, CudaDevice::get(0).properties.arch(), std::move(cuda)};
  return make_executable(plan, load_cuda(kernel, compile_cuda(kernel), plan), "cuda", text);
}

constexpr const char* kScale = R"(
extern "C" __global__ void scale(const float* x, float* y, float a, long long n) {
  const long long i = blockIdx.x * 256ll + threadIdx.x;
  if (i < n) y[i] = a * x[i];
}
)";

NDArray counted(int64_t n) {
  const NDArray array = NDArray::empty({n}, f32);
  for (int64_t i = 0; i < n; ++i) static_cast<float*>(array.data())[i] = static_cast<float>(i % 1000);
  return array;
}

TEST_F(Gpu, RunsAKernel) {
  const Executable scale = build(kScale, scale_plan(), {{}, {scale_launch()}});
  for (int64_t n : {1, 255, 256, 257, 100000}) {
    const NDArray x = counted(n), y = NDArray::zeros({n}, f32, kCuda0);
    scale(x.to(kCuda0), y, 2.5);
    const NDArray back = y.to({1, 0});
    for (int64_t i = 0; i < n; ++i)
      ASSERT_EQ(static_cast<float*>(back.data())[i], 2.5f * static_cast<float>(i % 1000)) << n << " " << i;
  }
}

TEST_F(Gpu, RunsOnAStreamOfItsOwn) {
  const CudaDevice& device = CudaDevice::get(0);
  const ScopedDevice scope(device);
  Stream stream = nullptr;
  device.driver.check(device.driver.stream_create(&stream, 1), "create a stream");
  const Executable scale = build(kScale, scale_plan(), {{}, {scale_launch()}});
  {
    const tilewright::cuda::StreamScope on(stream);
    const NDArray x = counted(1000).to(kCuda0), y = NDArray::zeros({1000}, f32, kCuda0);
    scale(x, y, 3);
    EXPECT_EQ(y.to({1, 0}).get_float({999}), 2997);
  }
  device.driver.stream_destroy(stream);
}

// out[block (y, x)] = the sum of the 8 x 32 box there, loaded by TMA.
constexpr const char* kBoxes = R"(
struct alignas(64) TensorMap { unsigned long long words[16]; };
extern "C" __global__ void boxes(const __grid_constant__ TensorMap map, float* out) {
  __shared__ alignas(128) float tile[8 * 32];
  __shared__ alignas(8) unsigned long long barrier;
  const unsigned at = (unsigned)__cvta_generic_to_shared(&barrier), to = (unsigned)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" :: "r"(at) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 :: "r"(to), "l"(&map), "r"(blockIdx.x * 32), "r"(blockIdx.y * 8), "r"(at) : "memory");
  }
  __syncthreads();
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }"
               :: "r"(at) : "memory");
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < 8 * 32; ++i) sum += tile[i];
    out[blockIdx.y * gridDim.x + blockIdx.x] = sum;
  }
}
)";

TEST_F(Gpu, LoadsThroughATensorMap) {
  if (!CudaDevice::get(0).properties.tensor_maps) GTEST_SKIP() << "no TMA";
  LaunchPlan plan;
  plan.name = "boxes";
  plan.memory = LaunchPlan::Memory::Cuda;
  plan.parameters = {tensor_parameter("x", f32, {symbol(0), symbol(1)}), tensor_parameter("out", f32, {symbol(2)})};
  plan.symbols = {shape_symbol("rows", 0, 0), shape_symbol("columns", 0, 1), shape_symbol("boxes", 1, 0)};
  plan.parameters[0].alignment = 16;
  TensorMapPlan map;
  map.name = "x", map.dtype = f32;
  map.dims = {symbol(1), symbol(0)}, map.strides = {symbol(1)}, map.box = {32, 8};
  KernelLaunch launch;
  launch.function = "boxes";
  const auto blocks = [](int s, int64_t tile) {
    return combine(IntOp::Kind::FloorDiv, combine(IntOp::Kind::Add, symbol(s), constant(tile - 1)), constant(tile));
  };
  launch.grid = {blocks(1, 32), blocks(0, 8), constant(1)};
  launch.block = {32, 1, 1};
  launch.parameters = {TensorMapParameter{0}, BufferParameter{1}};
  const Executable boxes = build(kBoxes, plan, {{map}, {launch}});
  // The last box is cut off in both directions: what is outside reads as zero.
  const NDArray x = NDArray::empty({12, 40}, f32), out = NDArray::zeros({4}, f32, kCuda0);
  for (int i = 0; i < 12 * 40; ++i) static_cast<float*>(x.data())[i] = 1;
  boxes(x.to(kCuda0), out);
  EXPECT_EQ(out.to({1, 0}).to_floats(), (std::vector<double>{256, 64, 128, 32}));
}

constexpr const char* kFails = R"(
extern "C" __global__ void scale(const float* x, tw_reports* reports) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (x[i] >= 300)
    if (unsigned long long* to = tw_report_failure(reports, 0, 1)) to[0] = i;
}
)";

TEST(GpuTexts, Compile) {
  for (const std::string& text : {std::string(kScale), std::string(kBoxes), report_text_head() + kFails})
    EXPECT_FALSE(Nvrtc::get().compile({"gpu_test", text, "sm_90a"}).cubin.empty());
}

TEST_F(Gpu, ReportsAFailedAssertion) {
  LaunchPlan plan = scale_plan();
  Site site;
  site.kind = Site::Kind::Assert, site.message = "x is small", site.operands = {{"i", i32}};
  plan.sites = {site};
  KernelLaunch launch = scale_launch();
  launch.parameters = {BufferParameter{0}, ReportParameter{}};
  const Executable program = build(report_text_head() + kFails, plan, {{}, {launch}});
  const NDArray x = counted(512).to(kCuda0), y = NDArray::zeros({512}, f32, kCuda0);
  expect_refusal(Code::AssertionFailed,
                 "scale: assertion failed in block (1, 0, 0), thread (44, 0, 0): x is small (i = 300)",
                 [&] { program(x, y, 1); });
}

TEST_F(Gpu, FindsTheDeviceOfAnAddress) {
  const NDArray there = NDArray::zeros({16}, f32, kCuda0);
  const int64_t shape[] = {8};
  EXPECT_EQ(tilewright::cuda::borrow(static_cast<float*>(there.data()) + 8, shape, f32).device(), kCuda0);
  const NDArray host = NDArray::zeros({16}, f32);
  EXPECT_THROW(tilewright::cuda::borrow(host.data(), shape, f32), LaunchError);
}

TEST_F(Gpu, LaunchCostsLittleBesideTheDriver) {
  const Executable scale = build(kScale, scale_plan(), {{}, {scale_launch()}});
  const NDArray x = counted(256).to(kCuda0), y = NDArray::zeros({256}, f32, kCuda0);
  const auto time = [&](auto&& act) {
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      tilewright::cuda::synchronize();
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < 200; ++i) act();
      const std::chrono::duration<double, std::micro> spent = std::chrono::steady_clock::now() - start;
      best = std::min(best, spent.count() / 200);
    }
    return best;
  };
  const double all = time([&] { scale(x, y, 2); });
  std::printf("a call with two tensors and a number: %.2f us with the driver\n", all);
  EXPECT_LT(all, 50);
}

}  // namespace
}  // namespace tilewright::runtime::cuda
