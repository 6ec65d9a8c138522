// The random numbers of the fuzzer: the same from one seed on every machine.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace tilewright::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }
  template <class T>
  T pick(std::initializer_list<T> list) {
    return *(list.begin() + below(static_cast<int64_t>(list.size())));
  }

 private:
  uint64_t state_;
};

}  // namespace tilewright::fuzz
