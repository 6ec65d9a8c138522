#include "target/gpu.h"

#include <algorithm>

#include "layout/fragment.h"
#include "support/diagnostic.h"

namespace tilewright::target {
namespace {

constexpr GpuTarget row(int arch, std::string_view name, GpuFeatures has, Multiprocessor multiprocessor, Rates rates,
                        int64_t multiprocessors, std::string_view machine) {
  return {arch,
          name,
          has,
          multiprocessor,
          rates,
          machine,
          multiprocessors,
          multiprocessor.shared_bytes - multiprocessor.reserved_bytes};
}

constexpr GpuFeatures kAda = {.fp8_conversions = true};
constexpr GpuFeatures kHopper = {.tma = true,
                                 .wgmma = true,
                                 .set_registers = true,
                                 .launch_order = true,
                                 .store_matrices = true,
                                 .fp8_conversions = true,
                                 .tf32_rounding = true,
                                 .vector_adds = true};
constexpr GpuFeatures kBlackwell = {.tma = true,
                                    .set_registers = true,
                                    .launch_order = true,
                                    .store_matrices = true,
                                    .fp8_conversions = true,
                                    .tf32_rounding = true,
                                    .vector_adds = true};
constexpr GpuFeatures kSmallBlackwell = {.set_registers = true,
                                         .launch_order = true,
                                         .store_matrices = true,
                                         .fp8_conversions = true,
                                         .tf32_rounding = true,
                                         .vector_adds = true};

// Blocks, threads and shared memory of a multiprocessor: cuda_occupancy.h of CUDA 13.0. Rates: white papers and data
// sheets of the devices; those of Blackwell are of tcgen05, which no kernel of ours uses.
constexpr GpuTarget kTargets[] = {
    row(80, "sm_80", {}, {.shared_bytes = 167936}, {"A100 SXM 80 GB", 2039e9, 19.5e12, 312e12, 156e12, 624e12, 19.5e12},
        108, "A100"),
    row(86, "sm_86", {}, {.threads = 1536, .blocks = 16, .shared_bytes = 102400},
        {"A10", 600e9, 31.2e12, 125e12, 62.5e12, 250e12, 0}, 72, "L40S"),
    row(87, "sm_87", {}, {.threads = 1536, .blocks = 16, .shared_bytes = 167936},
        {"Jetson AGX Orin 64 GB", 204.8e9, 5.3e12, 42.5e12, 21.2e12, 85e12, 0}, 16, "A100"),
    row(89, "sm_89", kAda, {.threads = 1536, .blocks = 24, .shared_bytes = 102400},
        {"L40S", 864e9, 91.6e12, 362e12, 183e12, 733e12, 0}, 108, "L40S"),
    row(90, "sm_90a", kHopper, {}, {"H200 SXM", 4.8e12, 67e12, 989e12, 494e12, 1979e12, 67e12}, 132, "H200"),
    row(100, "sm_100a", kBlackwell, {}, {"B200", 8e12, 75e12, 2250e12, 1125e12, 4500e12, 37e12}, 148, "B200"),
    row(103, "sm_103a", kBlackwell, {}, {"B300", 8e12, 75e12, 2250e12, 1125e12, 4500e12, 1.2e12}, 148, "B200"),
    row(110, "sm_110a", kBlackwell, {.threads = 1536, .blocks = 24},
        {"Jetson Thor", 273e9, 8.1e12, 258e12, 129e12, 517e12, 0}, 20, "B200"),
    row(120, "sm_120a", kSmallBlackwell, {.threads = 1536, .blocks = 24, .shared_bytes = 102400},
        {"GeForce RTX 5090", 1792e9, 104.8e12, 209.5e12, 104.8e12, 838e12, 0}, 170, "L40S"),
    row(121, "sm_121a", kSmallBlackwell, {.threads = 1536, .blocks = 24, .shared_bytes = 102400},
        {"GB10", 273e9, 31e12, 125e12, 62.5e12, 250e12, 0}, 48, "L40S"),
};

int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

GpuTarget GpuTarget::of(int arch) {
  const auto found =
      std::find_if(std::begin(kTargets), std::end(kTargets), [&](const GpuTarget& t) { return t.arch == arch; });
  check_internal(found != std::end(kTargets), "no GPU has the architecture {}", arch);
  return *found;
}

const GpuTarget* GpuTarget::named(std::string_view name) {
  for (const GpuTarget& t : kTargets)
    if (name == t.name || name == fmt::format("sm_{}", t.arch) || name == fmt::format("sm_{}a", t.arch)) return &t;
  return nullptr;
}

std::span<const GpuTarget> gpu_targets() { return kTargets; }

std::vector<std::string> gpu_names() {
  std::vector<std::string> out;
  for (const GpuTarget& t : kTargets) out.emplace_back(t.name);
  return out;
}

Occupancy GpuTarget::occupancy(int64_t threads, int64_t registers, int64_t shared_bytes_of_block) const {
  const Multiprocessor& m = multiprocessor;
  const int64_t warps = (threads + kWarpThreads - 1) / kWarpThreads;
  const int64_t of_block = warps * rounded_up(registers * kWarpThreads, m.register_unit);
  struct Bound {
    const char* what;
    int64_t blocks;
  };
  const Bound bounds[] = {{"registers", m.registers / std::max<int64_t>(of_block, 1)},
                          {"shared memory", m.shared_bytes / (shared_bytes_of_block + m.reserved_bytes)},
                          {"threads", m.threads / (warps * kWarpThreads)},
                          {"blocks", m.blocks}};
  const Bound* least = std::min_element(std::begin(bounds), std::end(bounds),
                                        [](const Bound& a, const Bound& b) { return a.blocks < b.blocks; });
  return {least->blocks, least->blocks * warps, m.threads / kWarpThreads, least->what};
}

double Rates::of_matrix(DType operand) const {
  if (operand == tf32) return tf32_rate;
  if (operand == f16 || operand == bf16) return half;
  if (operand == f64) return wide;
  return operand.bits == 8 ? eight : 0;
}

}  // namespace tilewright::target
