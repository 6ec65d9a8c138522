// Times as rates, ratios and JSON.
#pragma once
#include <nlohmann/json.hpp>

#include "race.h"

namespace bench::gpu {

using Json = nlohmann::ordered_json;

struct Work {
  double flops = 0, bytes = 0;
  // Whether the arithmetic is the bound on a device of about 200 operations a byte (H100, H200: 989 TFLOP/s in 16-bit
  // types over 3.4 and 4.8 TB/s).
  bool is_arithmetic() const { return flops > 200 * bytes; }
  double per_second(double seconds) const { return (is_arithmetic() ? flops : bytes) / seconds; }
};

// A contestant with what it does in one call.
struct Peer {
  Contestant contestant;
  Work work;
};

// {"us": .., "tflops": .., "gbs": ..} for both regimes.
Json json_of(const Times& times, const Work& work);
// How many times a peer's rate this is, by the unit that bounds `own`.
double ratio(const Work& own, double own_seconds, const Work& peer, double peer_seconds);
// "   712.3 TFLOP/s"
std::string rate_text(const Work& work, double seconds);

}  // namespace bench::gpu
