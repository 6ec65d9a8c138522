#include "rates.h"

#include <fmt/core.h>

namespace bench::gpu {
namespace {

Json rates(const Work& work, double seconds) {
  Json out = {{"us", seconds * 1e6}};
  if (work.flops > 0) out["tflops"] = work.flops / seconds * 1e-12;
  if (work.bytes > 0) out["gbs"] = work.bytes / seconds * 1e-9;
  return out;
}

}  // namespace

Json json_of(const Times& times, const Work& work) {
  Json out = {{"burst", rates(work, times.burst)}, {"sustained", rates(work, times.sustained)}};
  out["sustained"]["spread"] = times.spread;
  return out;
}

double ratio(const Work& own, double own_seconds, const Work& peer, double peer_seconds) {
  return own.is_arithmetic() ? own.flops / own_seconds / (peer.flops / peer_seconds)
                             : own.bytes / own_seconds / (peer.bytes / peer_seconds);
}

std::string rate_text(const Work& work, double seconds) {
  return work.is_arithmetic() ? fmt::format("{:7.1f} TFLOP/s", work.flops / seconds * 1e-12)
                              : fmt::format("{:7.0f} GB/s   ", work.bytes / seconds * 1e-9);
}

}  // namespace bench::gpu
