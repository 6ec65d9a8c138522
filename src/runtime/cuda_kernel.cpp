// load_cuda(): the callee that puts a call's launches on a stream.
#include "runtime/cuda_kernel.h"

#include "runtime/cuda_module.h"
#include "runtime/cuda_report.h"
#include "runtime/cuda_tensor_map.h"
#include "runtime/machine_code.h"
#include "support/diagnostic.h"

namespace tilewright::runtime::cuda {
namespace {

constexpr int kMaxDevices = 64;
constexpr int64_t kLargestGrid[3] = {2147483647, 65535, 65535};  // CUDA programming guide, compute capabilities

// The part of a launch that no call changes.
struct PreparedLaunch {
  std::vector<LaunchAttribute> attributes;
  LaunchConfig config{};
};

PreparedLaunch prepare(const KernelLaunch& launch) {
  PreparedLaunch out;
  const auto add = [&](LaunchAttribute::Id id, std::array<unsigned, 3> value) {
    LaunchAttribute attribute{};
    attribute.id = id;
    std::copy(value.begin(), value.end(), attribute.value);
    out.attributes.push_back(attribute);
  };
  const auto& c = launch.cluster;
  if (c != std::array<int, 3>{1, 1, 1})
    add(LaunchAttribute::Id::ClusterDimension,
        {static_cast<unsigned>(c[0]), static_cast<unsigned>(c[1]), static_cast<unsigned>(c[2])});
  if (launch.cooperative) add(LaunchAttribute::Id::Cooperative, {1, 0, 0});
  if (launch.programmatic_serialization) add(LaunchAttribute::Id::ProgrammaticStreamSerialization, {1, 0, 0});
  for (size_t d = 0; d < 3; ++d) out.config.block[d] = static_cast<unsigned>(launch.block[d]);
  out.config.dynamic_shared_bytes = static_cast<unsigned>(launch.dynamic_shared_bytes);
  out.config.attribute_count = static_cast<unsigned>(out.attributes.size());
  return out;
}

bool is_capturing(const CudaDevice& device, Stream stream) {
  int capturing = 0;
  device.driver.check(device.driver.stream_is_capturing(stream, &capturing), "ask whether a stream is being captured");
  return capturing != 0;
}

// The parameters of one launch: values in `bytes`, and where each lies.
struct ParameterBlock {
  alignas(64) std::array<char, kMaxParameterBytes> bytes;
  std::array<void*, kMaxParameters> places;
};

// One call on its way to a stream.
struct Enqueue {
  const BoundCall& call;
  CudaModule& module;
  Stream stream;
  std::span<void* const> workspaces;
  void* reports;

  void* buffer(int index) const {
    const int parameters = call.buffer_count - static_cast<int>(call.plan->workspaces.size());
    return index < parameters ? call.buffers[static_cast<size_t>(index)]
                              : workspaces[static_cast<size_t>(index - parameters)];
  }
};

class CudaKernel final : public Callee {
 public:
  CudaKernel(const CudaKernelText& kernel, std::string cubin)
      : name_(kernel.name),
        arch_(kernel.arch),
        plan_(kernel.plan),
        cubin_(std::move(cubin)),
        maps_(plan_.tensor_maps.size()) {
    for (const KernelLaunch& launch : plan_.launches) prepared_.push_back(prepare(launch));
    for (PreparedLaunch& p : prepared_) p.config.attributes = p.attributes.data();
  }
  ~CudaKernel() override {
    for (auto& module : modules_) delete module.load();
  }

  CudaModule& on(int index) {
    check_internal(index >= 0 && index < kMaxDevices, "cuda:{} is beyond the {} devices of a kernel", index,
                   kMaxDevices);
    std::atomic<CudaModule*>& slot = modules_[static_cast<size_t>(index)];
    if (CudaModule* module = slot.load(std::memory_order_acquire)) return *module;
    std::lock_guard lock(loading_);
    if (CudaModule* module = slot.load(std::memory_order_acquire)) return *module;
    slot.store(new CudaModule(CudaDevice::get(index), name_, arch_, cubin_, plan_), std::memory_order_release);
    return *slot.load();
  }

  void run(const BoundCall& call, CallReport& report) override {
    CudaModule& module = on(call.device_index);
    const ScopedDevice scope(module.device());
    const Stream stream = current_stream();
    if (call.plan->workspaces.empty() && call.plan->sites.empty())
      return launch_all({call, module, stream, {}, nullptr});
    std::array<void*, kMaxBuffers> lent;
    const std::vector<Workspace>& wanted = call.plan->workspaces;
    const std::span<void* const> workspaces(lent.data(), wanted.size());
    if (is_capturing(module.device(), stream)) {
      if (!call.plan->sites.empty()) refuse_capture_of_reports();
      for (size_t i = 0; i < wanted.size(); ++i)
        lent[i] = module.captured_memory(workspace_bytes(call, wanted[i]), wanted[i].zeroed);
      return launch_all({call, module, stream, workspaces, nullptr});
    }
    StreamMemory& memory = module.memory_of(stream);
    std::lock_guard lock(memory.mutex);
    for (size_t i = 0; i < wanted.size(); ++i)
      lent[i] = memory.get(module.device(), i, workspace_bytes(call, wanted[i]), wanted[i].zeroed);
    if (call.plan->sites.empty()) return launch_all({call, module, stream, workspaces, nullptr});
    void* buffer = memory.get(module.device(), wanted.size(), kReportBytes, false);
    begin_reports(module.device(), stream, buffer);
    launch_all({call, module, stream, workspaces, buffer});
    collect_reports(module.device(), stream, buffer, report);
  }

 private:
  void launch_all(const Enqueue& to) {
    for (size_t i = 0; i < plan_.launches.size(); ++i) launch(i, to);
  }

  void launch(size_t index, const Enqueue& to) {
    const KernelLaunch& launch = plan_.launches[index];
    LaunchConfig config = prepared_[index].config;
    if (!set_grid(launch, to.call, config)) return;
    config.stream = to.stream;
    ParameterBlock block;
    fill(launch, to, block);
    const Driver& d = to.module.device().driver;
    const Result result = d.launch(&config, to.module.function(index), block.places.data(), nullptr);
    if (result != kSuccess) d.fail_call(result, fmt::format("launch kernel '{}' of '{}'", launch.function, name_));
  }

  // False if there is no block to run.
  bool set_grid(const KernelLaunch& launch, const BoundCall& call, LaunchConfig& config) const {
    bool any = true;
    for (size_t d = 0; d < 3; ++d) {
      int64_t blocks = -1;
      const bool known = evaluate(launch.grid[d], call.symbols(), call.scalars(), blocks);
      if (!known || blocks < 0 || blocks > kLargestGrid[d] || blocks % launch.cluster[d] != 0)
        fail(
            Code::LaunchGridInvalid, {},
            fmt::format("{}: kernel '{}' has {} blocks in dimension {} of its grid, but must have 0 to {}{}", name_,
                        launch.function, known ? std::to_string(blocks) : "an impossible number of", d, kLargestGrid[d],
                        launch.cluster[d] > 1 ? fmt::format(" in clusters of {}", launch.cluster[d]) : ""));
      config.grid[d] = static_cast<unsigned>(blocks);
      any &= blocks > 0;
    }
    return any;
  }

  void fill(const KernelLaunch& launch, const Enqueue& to, ParameterBlock& block) {
    char* at = block.bytes.data();
    const auto place = [&](size_t i, size_t alignment, size_t bytes) {
      at += -reinterpret_cast<uintptr_t>(at) & (alignment - 1);
      block.places[i] = at;
      at += bytes;
      return block.places[i];
    };
    for (size_t i = 0; i < launch.parameters.size(); ++i) {
      const KernelParameter& parameter = launch.parameters[i];
      if (const auto* buffer = std::get_if<BufferParameter>(&parameter)) {
        void* const address = to.buffer(buffer->buffer);
        std::memcpy(place(i, 8, 8), &address, 8);
      } else if (const auto* value = std::get_if<ValueParameter>(&parameter)) {
        const int64_t number = value_of(*value, launch, i, to.call);
        const size_t bytes = static_cast<size_t>(value->bytes);
        std::memcpy(place(i, bytes, bytes), &number, bytes);  // little-endian: the low bytes come first
      } else if (const auto* map = std::get_if<TensorMapParameter>(&parameter)) {
        fill_map(static_cast<size_t>(map->map), to, *static_cast<TensorMap*>(place(i, 64, sizeof(TensorMap))));
      } else {
        std::memcpy(place(i, 8, 8), &to.reports, 8);
      }
    }
  }

  int64_t value_of(const ValueParameter& p, const KernelLaunch& launch, size_t index, const BoundCall& call) const {
    int64_t number = 0;
    const bool known = evaluate(p.value, call.symbols(), call.scalars(), number);
    const bool fits = known && (p.bytes == 8 || (number >= -(int64_t{1} << 31) && number < int64_t{1} << 32));
    if (!fits)
      fail(Code::LaunchValueRange, {},
           fmt::format("{}: parameter {} of kernel '{}' {}", name_, index, launch.function,
                       known ? fmt::format("is {}, which does not fit 32 bits", number) : "has no value in 64 bits"));
    return number;
  }

  void fill_map(size_t index, const Enqueue& to, TensorMap& out) {
    const TensorMapPlan& map = plan_.tensor_maps[index];
    const TensorMapValues values = evaluate_map(map, to.call, to.buffer(map.buffer), to.module.placeholder());
    maps_.get(index, values, out, [&] { return encode_map(to.module.device().driver, map, to.call, values); });
  }

  std::string name_, arch_;
  CudaPlan plan_;
  std::string cubin_;
  std::vector<PreparedLaunch> prepared_;
  TensorMapCache maps_;
  std::mutex loading_;
  std::array<std::atomic<CudaModule*>, kMaxDevices> modules_{};
};

}  // namespace

void refuse_wrong_code(const std::string& name, const std::string& cubin) {
  if (doubtful_code(cubin).merged_clamp)
    fail(Code::DeviceCompilerUnusable, {},
         fmt::format(
             "the device compiler's machine code of kernel '{}' compares a clamped integer with the wrong bound", name),
         "ptxas 13.0 does that to max(0, min(a, b)) == a: in CUDA text of your own, ask for a <= b && a >= 0 instead");
}

std::unique_ptr<Callee> load_cuda(const CudaKernelText& kernel, DeviceBinary binary, const LaunchPlan& plan) {
  check_internal(plan.memory == LaunchPlan::Memory::Cuda, "{}: a plan of the processor for a CUDA kernel", plan.name);
  verify(kernel.plan, plan);
  refuse_wrong_code(kernel.name, binary.cubin);
  auto callee = std::make_unique<CudaKernel>(kernel, std::move(binary.cubin));
  // What can never run here is told now. Code for another architecture has a text all the same, and is told at a call.
  if (device_count() > 0 && runs_on(kernel.arch, CudaDevice::get(0).properties)) callee->on(0);
  return callee;
}

}  // namespace tilewright::runtime::cuda
