#include "copy.h"

#include <algorithm>
#include <chrono>

#include "example.h"
#include "runtime/cuda_device.h"
#include "runtime/cuda_kernel.h"
#include "tilewright/cuda.h"

namespace bench::gpu {
namespace {

namespace rt = tilewright::runtime;
using tilewright::Device;
using tilewright::Executable;
using tilewright::NDArray;

constexpr Device kDevice{2, 0};
constexpr int64_t kBlockFloats = 256 * 4 * 4;  // threads, accesses of each, floats of an access

constexpr const char* kText = R"(// Copies n floats, n a multiple of 4.
extern "C" __global__ void __launch_bounds__(256) copy16(const uint4* __restrict__ from, uint4* __restrict__ to,
                                                         long long n) {
  const long long first = blockIdx.x * 1024ll + threadIdx.x;
  uint4 part[4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + i * 256 < n / 4) part[i] = from[first + i * 256];
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (first + i * 256 < n / 4) to[first + i * 256] = part[i];
}
)";

rt::LaunchPlan plan_of_copy() {
  rt::LaunchPlan plan;
  plan.name = "copy16";
  plan.memory = rt::LaunchPlan::Memory::Cuda;
  for (const char* name : {"from", "to"}) {
    rt::Parameter p;
    p.name = name, p.dtype = tilewright::f32, p.shape = {rt::symbol(0)}, p.alignment = 16;
    plan.parameters.push_back(p);
  }
  rt::Symbol n;
  n.name = "n";
  plan.symbols = {n};
  return plan;
}

rt::cuda::CudaKernelText text_of_copy() {
  rt::cuda::KernelLaunch launch;
  launch.function = "copy16";
  const auto rounded_up = combine(rt::IntOp::Kind::Add, rt::symbol(0), rt::constant(kBlockFloats - 1));
  launch.grid = {combine(rt::IntOp::Kind::FloorDiv, rounded_up, rt::constant(kBlockFloats)), rt::constant(1),
                 rt::constant(1)};
  launch.block = {256, 1, 1};
  launch.parameters = {rt::cuda::BufferParameter{0}, rt::cuda::BufferParameter{1},
                       rt::cuda::ValueParameter{rt::symbol(0), 8}};
  return {"copy16", kText, rt::cuda::CudaDevice::get(0).properties.arch(), {{}, {launch}}};
}

Executable build_copy() {
  const rt::cuda::CudaKernelText kernel = text_of_copy();
  const rt::LaunchPlan plan = plan_of_copy();
  return rt::make_executable(plan, rt::cuda::load_cuda(kernel, rt::cuda::compile_cuda(kernel), plan), "cuda", kText);
}

rt::cuda::DevicePointer address_of(const std::shared_ptr<void>& memory) {
  return reinterpret_cast<rt::cuda::DevicePointer>(memory.get());
}

// Median over groups of calls, each followed by a wait that is not counted.
template <class Call>
double host_seconds(const Call& call) {
  constexpr int kGroups = 21, kCalls = 100;
  std::vector<double> times;
  for (int g = 0; g < kGroups; ++g) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kCalls);
    tilewright::cuda::synchronize();
  }
  std::nth_element(times.begin(), times.begin() + kGroups / 2, times.end());
  return times[kGroups / 2];
}

}  // namespace

const char* Copies::kernel_text() { return kText; }

Copies::Copies(int64_t max_bytes) : half_(max_bytes / 2 / 16 * 16), kernel_(build_copy()) {
  const rt::cuda::CudaDevice& device = rt::cuda::CudaDevice::get(0);
  from_ = rt::cuda::allocate(device, half_), to_ = rt::cuda::allocate(device, half_);
  // Random bits, the same for every 16 MB.
  const NDArray bits = NDArray(examples::random_array({1 << 21}, tilewright::i64, 1, -0x1p62, 0x1p62)).to(kDevice);
  const int64_t step = tilewright::bytes_of(bits.dtype(), bits.size());
  const rt::cuda::ScopedDevice scope(device);
  for (int64_t at = 0; at < half_; at += step)
    device.driver.check(
        device.driver.copy_on_device(address_of(from_) + static_cast<uint64_t>(at),
                                     reinterpret_cast<rt::cuda::DevicePointer>(bits.data()),
                                     static_cast<size_t>(std::min(step, half_ - at)), rt::cuda::current_stream()),
        "fill what is copied");
  tilewright::cuda::synchronize();
}

Contestant Copies::by_driver(int64_t bytes) const {
  const int64_t half = std::min(half_, bytes / 2 / 16 * 16);
  return {"copy by the driver", [half, from = from_, to = to_] {
            const rt::cuda::CudaDevice& device = rt::cuda::CudaDevice::get(0);
            const rt::cuda::ScopedDevice scope(device);
            device.driver.check(device.driver.copy_on_device(address_of(to), address_of(from),
                                                             static_cast<size_t>(half), rt::cuda::current_stream()),
                                "copy");
          }};
}

Contestant Copies::by_kernel(int64_t bytes) const {
  const std::array<int64_t, 1> shape = {std::min(half_, bytes / 2 / 16 * 16) / 4};
  const auto array = [&](const std::shared_ptr<void>& memory) {
    return NDArray::borrow(memory.get(), shape, tilewright::f32, {}, 0, memory, kDevice);
  };
  return {"copy of 16 bytes a thread", [kernel = kernel_, from = array(from_), to = array(to_)] { kernel(from, to); }};
}

LaunchCost launch_cost() {
  const Executable kernel = build_copy();
  const NDArray from = NDArray::zeros({4}, tilewright::f32, kDevice),
                to = NDArray::zeros({4}, tilewright::f32, kDevice);
  LaunchCost cost;
  cost.ours = host_seconds([&] { kernel(from, to); });

  const rt::cuda::CudaDevice& device = rt::cuda::CudaDevice::get(0);
  const rt::cuda::Driver& d = device.driver;
  const rt::cuda::ScopedDevice scope(device);
  rt::cuda::Module module = nullptr;
  rt::cuda::Function function = nullptr;
  d.check(d.module_load(&module, rt::cuda::compile_cuda(text_of_copy()).cubin.data()), "load the copy");
  d.check(d.module_function(&function, module, "copy16"), "find the copy");
  void *a = from.data(), *b = to.data();
  int64_t n = 4;
  void* parameters[] = {&a, &b, &n};
  rt::cuda::LaunchConfig config{};
  config.grid[0] = config.grid[1] = config.grid[2] = config.block[1] = config.block[2] = 1, config.block[0] = 256;
  config.stream = rt::cuda::current_stream();
  cost.driver = host_seconds([&] { d.check(d.launch(&config, function, parameters, nullptr), "launch"); });
  d.check(d.module_unload(module), "unload the copy");
  return cost;
}

}  // namespace bench::gpu
