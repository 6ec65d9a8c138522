#include "runtime/shared_memory.h"

#include <algorithm>
#include <vector>

namespace tilewright::runtime {
namespace {

// step * x, where 0 <= x <= most.
struct Step {
  int64_t step = 0, most = 0;
};

// Is there a sum of the steps that gives the number? Steps are positive and descend.
class Search {
 public:
  explicit Search(std::vector<Step> steps) : steps_(std::move(steps)), rest_(steps_.size() + 1, 0) {
    for (size_t i = steps_.size(); i-- > 0;) rest_[i] = rest_[i + 1] + steps_[i].step * steps_[i].most;
  }
  bool reaches(int64_t number, size_t from = 0) {
    if (number == 0) return true;
    if (number < 0 || number > rest_[from] || tries_-- <= 0) return false;
    const auto [step, most] = steps_[from];
    const int64_t missing = number - rest_[from + 1];
    const int64_t least = missing > 0 ? (missing + step - 1) / step : 0;
    for (int64_t x = std::min(most, number / step); x >= least && tries_ > 0; --x)
      if (reaches(number - x * step, from + 1)) return true;
    return false;
  }

 private:
  std::vector<Step> steps_;
  std::vector<int64_t> rest_;  // what all steps from here on give at most
  int tries_ = 10000;
};

int64_t bytes_of_element(const NDArray& t) { return std::max(1, t.dtype().storage_bits() / 8); }

bool is_whole(const NDArray& t, const Extent& e) {
  return t.is_contiguous() || static_cast<int64_t>(e.end - e.begin) == t.size() * bytes_of_element(t);
}

}  // namespace

Extent extent_of(const NDArray& t) {
  Extent e;
  e.begin = e.end = reinterpret_cast<uintptr_t>(t.data());
  if (t.dtype().is_packed() && t.is_contiguous()) {
    e.end += static_cast<uintptr_t>((t.size() + 1) / 2);
    return e;
  }
  for (int d = 0; d < t.rank(); ++d) {
    const int64_t way = (t.shape(d) - 1) * t.stride(d) * t.dtype().storage_bits() / 8;
    (way < 0 ? e.begin : e.end) += static_cast<uintptr_t>(way);
  }
  e.end += static_cast<uintptr_t>(bytes_of_element(t));
  return e;
}

bool overlap_in_part(const NDArray& a, const NDArray& b) {
  const Extent x = extent_of(a), y = extent_of(b);
  if (!x.meets(y)) return false;
  if (is_whole(a, x) && is_whole(b, y)) return x.begin != y.begin || x.end != y.end;
  if (a.dtype().is_packed() || b.dtype().is_packed()) return false;
  const bool same_elements = std::ranges::equal(a.shape(), b.shape()) && std::ranges::equal(a.strides(), b.strides());
  if (a.data() == b.data() && same_elements && a.dtype().storage_bits() == b.dtype().storage_bits()) return false;
  // Bytes are counted from the first of each tensor, those of b down from its last: where do both give one address?
  std::vector<Step> steps;
  const auto add = [&](int64_t step, int64_t count) {
    if (step == 0 || count <= 1) return;
    const auto same = std::ranges::find(steps, std::abs(step), &Step::step);
    if (same == steps.end())
      steps.push_back({std::abs(step), count - 1});
    else
      same->most += count - 1;
  };
  for (const NDArray* t : {&a, &b}) {
    for (int d = 0; d < t->rank(); ++d) add(t->stride(d) * bytes_of_element(*t), t->shape(d));
    add(1, bytes_of_element(*t));
  }
  std::ranges::sort(steps, std::greater<>(), &Step::step);
  return Search(std::move(steps)).reaches(static_cast<int64_t>(y.end - 1 - x.begin));
}

}  // namespace tilewright::runtime
