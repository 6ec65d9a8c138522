#include "race.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "runtime/cuda_device.h"
#include "tilewright/cuda.h"

namespace bench::gpu {
namespace {

namespace rt = tilewright::runtime::cuda;

constexpr int64_t kFlushBytes = 256 << 20;  // several times the second-level cache of any device so far
constexpr int kGroup = 10;                  // calls after a rest
constexpr auto kRest = std::chrono::milliseconds(50);
constexpr double kWarmSeconds = 0.3;
constexpr int kQueued = 200;  // calls put on the stream before we wait: the driver's queue holds 1024

// Every call has two events of its own, read when all are over: nothing waits between calls.
class Stopwatch {
 public:
  Stopwatch() : device_(rt::CudaDevice::get(0)), flush_(rt::allocate(device_, kFlushBytes)) {}

  // Writes over the second-level cache, outside of what is timed.
  void flush() const {
    const rt::ScopedDevice scope(device_);
    device_.driver.check(device_.driver.set_bytes(reinterpret_cast<rt::DevicePointer>(flush_.get()), 0, kFlushBytes,
                                                  rt::current_stream()),
                         "write over the cache");
  }
  void run(const Contestant& c) const {
    flush();
    c.call();
  }
  void time(const Contestant& c, size_t slot) {
    while (timers_.size() <= slot) timers_.push_back(std::make_unique<rt::Timer>(device_));
    flush();
    timers_[slot]->start(rt::current_stream());
    c.call();
    timers_[slot]->stop(rt::current_stream());
  }
  double seconds(size_t slot) const { return timers_[slot]->milliseconds() * 1e-3; }

 private:
  const rt::CudaDevice& device_;
  std::shared_ptr<void> flush_;
  std::vector<std::unique_ptr<rt::Timer>> timers_;
};

double quantile(std::vector<double>& values, double q) {
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(q * static_cast<double>(values.size())))];
}

std::vector<double> burst(Stopwatch& watch, const std::vector<Contestant>& contestants, int turns) {
  std::vector<std::vector<double>> times(contestants.size());
  for (int done = 0; done < turns; done += kGroup)
    for (size_t c = 0; c < contestants.size(); ++c) {
      std::this_thread::sleep_for(kRest);
      for (size_t i = 0; i < kGroup; ++i) watch.time(contestants[c], i);
      tilewright::cuda::synchronize();
      for (size_t i = 0; i < kGroup; ++i) times[c].push_back(watch.seconds(i));
    }
  std::vector<double> medians;
  for (auto& t : times) medians.push_back(quantile(t, 0.5));
  return medians;
}

void keep_busy(const Stopwatch& watch, const std::vector<Contestant>& contestants) {
  const auto start = std::chrono::steady_clock::now();
  int queued = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < kWarmSeconds) {
    for (const Contestant& c : contestants) watch.run(c);
    queued += static_cast<int>(contestants.size());
    if (queued >= 16) tilewright::cuda::synchronize(), queued = 0;
  }
}

std::vector<std::vector<double>> sustained(Stopwatch& watch, const std::vector<Contestant>& contestants, int turns) {
  keep_busy(watch, contestants);
  std::vector<std::vector<double>> times(contestants.size());
  const size_t n = contestants.size();
  const int rounds_queued = std::max(1, kQueued / static_cast<int>(n));
  for (int done = 0; done < turns; done += rounds_queued) {
    const size_t rounds = static_cast<size_t>(std::min(rounds_queued, turns - done));
    for (size_t r = 0; r < rounds; ++r)
      for (size_t c = 0; c < n; ++c) watch.time(contestants[c], r * n + c);
    tilewright::cuda::synchronize();
    for (size_t r = 0; r < rounds; ++r)
      for (size_t c = 0; c < n; ++c) times[c].push_back(watch.seconds(r * n + c));
  }
  return times;
}

}  // namespace

std::vector<Times> race(const std::vector<Contestant>& contestants, int turns) {
  Stopwatch watch;
  for (const Contestant& c : contestants) watch.run(c);
  tilewright::cuda::synchronize();
  const std::vector<double> bursts = burst(watch, contestants, turns);
  std::vector<std::vector<double>> loaded = sustained(watch, contestants, turns);
  std::vector<Times> out;
  for (size_t c = 0; c < contestants.size(); ++c)
    out.push_back({bursts[c], quantile(loaded[c], 0.5), quantile(loaded[c], 0.75) / quantile(loaded[c], 0.25) - 1});
  return out;
}

}  // namespace bench::gpu
