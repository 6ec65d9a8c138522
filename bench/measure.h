// How times are taken: medians of many, two contestants in turn.
#pragma once
#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

namespace bench {

inline double seconds_of(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

struct Contest {
  double own = 0, peer = 0;            // medians, seconds
  double own_best = 0, peer_best = 0;  // the fastest of each
};

// Turn by turn, with a rest after each: worker threads of every library spin for a while after a call (those of
// OpenBLAS for tens of milliseconds). A call before the one that counts wakes the contestant's threads: after a rest
// the scheduler may leave two of them on one core for 4 ms, which is as long as half a call takes.
inline Contest contest(const std::function<double()>& own, const std::function<double()>& peer, int turns) {
  std::vector<double> a, b;
  auto rest = [] { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
  for (int i = 0; i < turns; ++i) {
    own(), a.push_back(own()), rest();
    peer(), b.push_back(peer()), rest();
  }
  return {median(a), median(b), *std::min_element(a.begin(), a.end()), *std::min_element(b.begin(), b.end())};
}

// Each prints a table and gives its rows.
nlohmann::json compile_time();
nlohmann::json cpu(bool with_torch, int turns, const std::string& only);  // programs whose names hold `only`

}  // namespace bench
