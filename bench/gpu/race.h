// Times of calls on a device, by its own events: contestants in turn, in one process, each call with a cold
// second-level cache.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace bench::gpu {

struct Contestant {
  std::string name;
  std::function<void()> call;  // puts work on the current stream
};

// Seconds of one call, medians.
struct Times {
  double burst = 0;      // groups of ten calls after 50 ms of rest: the clock is as high as it gets
  double sustained = 0;  // after a third of a second of work without rest: the power limit decides
  double spread = 0;     // of the sustained times: the third quartile over the first, less one
};

// One call of each is made first, not counted; errors of a call come out of here as they are.
std::vector<Times> race(const std::vector<Contestant>& contestants, int turns);

}  // namespace bench::gpu
