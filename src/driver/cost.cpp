#include "tilewright/cost.h"

#include "driver/explain.h"
#include "ir/program.h"

namespace tilewright {

std::optional<double> predicted_microseconds(const Program& program, const std::string& arch,
                                             const std::map<std::string, int64_t>& values) {
  const Explanation e = explain_gpu(program.box().program, values, arch, false, 0);
  if (!e.gpu) return {};
  double sum = 0;
  for (const GpuLaunchFacts& launch : e.gpu->launches) {
    if (!launch.priced.price) return {};
    sum += launch.priced.price->microseconds;
  }
  return sum;
}

}  // namespace tilewright
