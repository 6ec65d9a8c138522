// Random layouts, and the brute force that the layout tests compare with.
#pragma once
#include <functional>
#include <random>

#include "layout/fragment.h"
#include "layout/memory.h"

namespace tilewright {

using Index = std::vector<int64_t>;

// Calls f at every index of the shape, last dimension fastest.
void for_each_index(const std::vector<int64_t>& shape, const std::function<void(const Index&)>& f);

class LayoutSamples {
 public:
  explicit LayoutSamples(uint32_t seed) : random_(seed) {}
  int64_t upto(int64_t n) { return std::uniform_int_distribution<int64_t>(1, n)(random_); }
  // Any radices, some of them odd; strides without overlap, sometimes with gaps; sometimes padding and copies.
  FragmentLayout fragment(bool powers_of_two = false, bool copies = true);
  MemoryLayout memory(const std::vector<int64_t>& shape, bool swizzled);

 private:
  std::mt19937 random_;
};

}  // namespace tilewright
