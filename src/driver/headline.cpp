#include "driver/headline.h"

#include "support/diagnostic.h"

namespace tilewright {
namespace {

// The time that the launches take by the model of plan/price.h, in microseconds; none: it is not known of one.
std::optional<double> modelled(const GpuFacts& gpu) {
  double sum = 0;
  for (const GpuLaunchFacts& launch : gpu.launches) {
    if (!launch.priced.price) return std::nullopt;
    sum += launch.priced.price->microseconds;
  }
  return gpu.launches.empty() ? std::nullopt : std::optional(sum);
}

std::string microseconds(double us) { return us < 1000 ? fmt::format("{:.3g} us", us) : fmt::format("{:.0f} us", us); }

std::string work(const Explanation& e) {
  if (!e.flops || !e.moved_bytes || !e.tensor_bytes)
    return "how much work it is depends on the call: explain(N=4096) says more";
  return fmt::format("{} flops, {} bytes moved, {} bytes of tensors", *e.flops, *e.moved_bytes, *e.tensor_bytes);
}

std::string bound(const Explanation& e) {
  if (!e.gpu || !e.gpu->compute_floor || !e.gpu->memory_floor) return work(e);
  const double compute = *e.gpu->compute_floor * 1e6, memory = *e.gpu->memory_floor * 1e6;
  const double floor = std::max(compute, memory);
  std::string out =
      fmt::format("bound by {}, {} at least on {}", compute > memory ? "the matrix and vector units" : "memory",
                  microseconds(floor), e.gpu->device);
  const std::optional<double> model = modelled(*e.gpu);
  if (model && *model > 0 && floor > 0)
    out += fmt::format("; about {} by the model, {:.0f}% of the floor's speed", microseconds(*model),
                       std::min(100.0, 100 * floor / *model));
  return out;
}

// Copies between global memory and the chip that another way than TMA takes.
std::string copies(const Explanation& e) {
  int64_t all = 0, others = 0;
  std::string first;
  for (const LaunchFacts& launch : e.launches)
    for (const OperationFacts& op : launch.operations) {
      if (!op.by_tma) continue;
      ++all;
      if (*op.by_tma) continue;
      if (others++ == 0)
        first = fmt::format("line {}{}", op.location.line, op.not_tma.empty() ? "" : ", " + op.not_tma);
    }
  if (all == 0) return "";
  if (others == 0) return all == 1 ? "; its copy is TMA" : fmt::format("; all {} copies are TMA", all);
  return fmt::format("; {} of {} copies {} not TMA: {}{}", others, all, others == 1 ? "is" : "are", first,
                     others > 1 ? ", and others" : "");
}

std::string vectors(const Explanation& e) {
  int64_t loops = 0, vectorized = 0;
  int first = 0;
  for (const LaunchFacts& launch : e.launches)
    for (const OperationFacts& op : launch.operations) {
      loops += op.loops, vectorized += op.vectorized;
      if (first == 0 && op.vectorized < op.loops) first = op.location.line;
    }
  if (loops == 0) return "";
  if (vectorized == loops)
    return loops == 1 ? "; its innermost loop is vectorized"
                      : fmt::format("; all {} innermost loops are vectorized", loops);
  return fmt::format("; {} of {} innermost loops {} not vectorized, the first in line {}", loops - vectorized, loops,
                     loops - vectorized == 1 ? "is" : "are", first);
}

}  // namespace

std::string headline(const Explanation& e) {
  if (e.refused) return fmt::format("refused: {}", e.refused->message);
  return bound(e) + (e.gpu ? copies(e) : vectors(e));
}

}  // namespace tilewright
