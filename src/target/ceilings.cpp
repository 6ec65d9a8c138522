#include "target/ceilings.h"

#include <algorithm>

namespace tilewright::target {
namespace {

constexpr Rates kH200{"H200 SXM", 4.8e12, 67e12, 989e12, 494e12, 1979e12, 67e12};
constexpr Rates kL40S{"L40S", 864e9, 91.6e12, 362e12, 183e12, 733e12, 0};
constexpr Rates kA100{"A100 SXM 80 GB", 2039e9, 19.5e12, 312e12, 156e12, 624e12, 19.5e12};

constexpr int64_t kWarp = 32;

int64_t rounded_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

Multiprocessor multiprocessor_of(int arch) {
  Multiprocessor out;
  if (arch == 80) out.shared_bytes = 167936;
  if (arch == 89) out.shared_bytes = 102400, out.threads = 1536, out.blocks = 24;
  return out;
}

Occupancy occupancy_of(int arch, int64_t threads, int64_t registers, int64_t shared_bytes) {
  const Multiprocessor m = multiprocessor_of(arch);
  const int64_t warps = (threads + kWarp - 1) / kWarp;
  const int64_t of_block = warps * rounded_up(registers * kWarp, m.register_unit);
  struct Bound {
    const char* what;
    int64_t blocks;
  };
  const Bound bounds[] = {{"registers", m.registers / std::max<int64_t>(of_block, 1)},
                          {"shared memory", m.shared_bytes / (shared_bytes + m.reserved_bytes)},
                          {"threads", m.threads / (warps * kWarp)},
                          {"blocks", m.blocks}};
  const Bound* least = std::min_element(std::begin(bounds), std::end(bounds),
                                        [](const Bound& a, const Bound& b) { return a.blocks < b.blocks; });
  return {least->blocks, least->blocks * warps, m.threads / kWarp, least->what};
}

double Rates::of_matrix(DType operand) const {
  if (operand == tf32) return tf32_rate;
  if (operand == f16 || operand == bf16) return half;
  if (operand == f64) return wide;
  return operand.bits == 8 ? eight : 0;
}

const Rates& rates_of(int arch) { return arch >= 90 ? kH200 : arch == 89 ? kL40S : kA100; }

}  // namespace tilewright::target
