#include "simulator/clocks.h"

#include <algorithm>

namespace tilewright::simulator {

Clocks::Clocks(int64_t threads, uint32_t& eras)
    : eras_(eras), now_(static_cast<size_t>(threads)), known_(static_cast<size_t>(threads)) {
  new_era();
}

void Clocks::new_era() {
  era_ = ++eras_;
  std::fill(now_.begin(), now_.end(), 1);
  std::fill(known_.begin(), known_.end(), nullptr);
}

Knowledge Clocks::release(std::span<const int64_t> threads) {
  auto all = std::make_shared<std::vector<Clock>>(now_.size());
  const std::vector<Clock>* last = nullptr;  // threads that left one barrier know the same
  for (const int64_t t : threads) {
    const auto i = static_cast<size_t>(t);
    const std::vector<Clock>* known = known_[i].get();
    if (known && known != last)
      for (size_t j = 0; j < all->size(); ++j) (*all)[j] = std::max((*all)[j], (*known)[j]);
    last = known;
    (*all)[i] = std::max((*all)[i], now_[i]);
    ++now_[i];
  }
  return all;
}

void Clocks::acquire(std::span<const int64_t> threads, const Knowledge& knowledge) {
  Knowledge before, after;
  for (const int64_t t : threads) {
    Knowledge& k = known_[static_cast<size_t>(t)];
    if (!after || k != before) before = k, after = join(k, knowledge);
    k = after;
  }
}

Knowledge join(const Knowledge& a, const Knowledge& b) {
  if (!a || !b) return a ? a : b;
  auto all = std::make_shared<std::vector<Clock>>(*a);
  for (size_t i = 0; i < all->size(); ++i) (*all)[i] = std::max((*all)[i], (*b)[i]);
  return all;
}

}  // namespace tilewright::simulator
