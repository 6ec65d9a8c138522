#include "target/gpu.h"

#include <algorithm>

#include "layout/fragment.h"
#include "support/diagnostic.h"

namespace tilewright::target {
namespace {

constexpr GpuTarget row(int arch, std::string_view name, GpuFeatures has, Multiprocessor multiprocessor, Rates rates,
                        int64_t multiprocessors) {
  return {arch,
          name,
          has,
          multiprocessor,
          rates,
          multiprocessors,
          multiprocessor.shared_bytes - multiprocessor.reserved_bytes};
}

constexpr GpuTarget kTargets[] = {
    row(80, "sm_80", {}, {.shared_bytes = 167936}, {"A100 SXM 80 GB", 2039e9, 19.5e12, 312e12, 156e12, 624e12, 19.5e12},
        108),
    row(89, "sm_89", {.fp8_conversions = true}, {.threads = 1536, .blocks = 24, .shared_bytes = 102400},
        {"L40S", 864e9, 91.6e12, 362e12, 183e12, 733e12, 0}, 108),
    row(90, "sm_90a",
        {.tma = true, .wgmma = true, .set_registers = true, .launch_order = true, .fp8_conversions = true}, {},
        {"H200 SXM", 4.8e12, 67e12, 989e12, 494e12, 1979e12, 67e12}, 132),
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
