#include "simulator/clocks.h"

#include <algorithm>

namespace tilewright::simulator {

Clocks::Clocks(int64_t threads, int64_t agents, uint32_t& eras)
    : eras_(eras),
      threads_(threads),
      now_(static_cast<size_t>(threads), 0),
      base_(static_cast<size_t>(threads + agents), 0),
      known_(static_cast<size_t>(threads)),
      fences_(static_cast<size_t>(threads)),
      fencers_(static_cast<size_t>(threads)),
      all_fences_(static_cast<size_t>(threads)) {
  new_era();
}

void Clocks::new_block() {
  new_era();
  first_era_ = era_;
  std::fill(base_.begin() + threads_, base_.end(), 0);
  for (std::vector<Clock>& fences : fences_) fences.clear();
  for (std::vector<Fencer>& fencers : fencers_) fencers.clear();
  for (std::vector<Clock>& fences : all_fences_) fences.clear();
}

void Clocks::new_era() {
  era_ = ++eras_;
  const std::vector<Clock>* last = nullptr;
  for (Knowledge& k : known_) {
    if (k && k.get() != last)
      for (auto i = static_cast<size_t>(threads_); i < base_.size(); ++i) base_[i] = std::max(base_[i], (*k)[i]);
    last = k.get();
  }
  std::fill(known_.begin(), known_.end(), nullptr);
  for (size_t t = 0; t < now_.size(); ++t) base_[t] = now_[t]++;
}

std::vector<Witness> Clocks::witnesses(std::span<const int64_t> threads) const {
  std::vector<Witness> all;
  for (const int64_t t : threads) {
    const std::vector<Clock>* known = known_[static_cast<size_t>(t)].get();
    const auto is_like = [&](int64_t other) {
      const auto &mine = fencers_[static_cast<size_t>(t)], &others = fencers_[static_cast<size_t>(other)];
      if (mine.empty() || others.empty()) return mine.empty() == others.empty();
      return mine.back().era == others.back().era && mine.back().known == others.back().known;
    };
    if (std::none_of(all.begin(), all.end(), [&](const Witness& w) { return w.known == known && is_like(w.like); }))
      all.push_back({known, threads.size() == 1 ? t : -1, t});
  }
  return all;
}

Clock Clocks::known(int64_t thread, int64_t agent) const {
  const Knowledge& k = known_[static_cast<size_t>(thread)];
  const Clock base = base_[static_cast<size_t>(agent)];
  return k ? std::max(base, (*k)[static_cast<size_t>(agent)]) : base;
}

Knowledge Clocks::release(std::span<const int64_t> threads) {
  auto all = std::make_shared<std::vector<Clock>>(base_.size());
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

Knowledge Clocks::with_agent(const Knowledge& knowledge, int64_t agent, Clock at) const {
  auto all =
      knowledge ? std::make_shared<std::vector<Clock>>(*knowledge) : std::make_shared<std::vector<Clock>>(base_.size());
  Clock& clock = (*all)[static_cast<size_t>(agent)];
  clock = std::max(clock, at);
  return all;
}

void Clocks::learn(std::span<const int64_t> threads, int64_t agent, Clock at) {
  Knowledge before, after;
  for (const int64_t t : threads) {
    Knowledge& k = known_[static_cast<size_t>(t)];
    if (!after || k != before) before = k, after = with_agent(k, agent, at);
    k = after;
  }
}

// The fence is a deed of the clock after those that it fences.
void Clocks::fence(int64_t thread, bool all) {
  const auto i = static_cast<size_t>(thread);
  fences_[i].push_back(now_[i]), fencers_[i].push_back({era_, known_[i]});
  if (all) all_fences_[i].push_back(now_[i]);
  ++now_[i];
}

bool Clocks::is_fenced(const Witness& witness, int64_t thread, Clock at, bool global) const {
  const std::vector<Clock>& fences = (global ? all_fences_ : fences_)[static_cast<size_t>(thread)];
  const auto first = std::lower_bound(fences.begin(), fences.end(), at);
  return first != fences.end() && knows(witness, thread, *first + 1);
}

bool Clocks::is_fenced_by_any(const Witness& witness, int64_t thread, Clock at, uint32_t era) const {
  for (int64_t t = 0; t < threads_; ++t) {
    const auto i = static_cast<size_t>(t);
    // What somebody knows only grows: the last fence that the witness knows of counts.
    size_t f = fences_[i].size();
    while (f > 0 && t != witness.like && !knows(witness, t, fences_[i][f - 1] + 1)) --f;
    if (f == 0) continue;
    const Fencer& fencer = fencers_[i][f - 1];
    if (era < fencer.era || (t == thread && fences_[i][f - 1] >= at) ||
        (fencer.known && (*fencer.known)[static_cast<size_t>(thread)] >= at))
      return true;
  }
  return false;
}

Knowledge join(const Knowledge& a, const Knowledge& b) {
  if (!a || !b) return a ? a : b;
  auto all = std::make_shared<std::vector<Clock>>(*a);
  for (size_t i = 0; i < all->size(); ++i) (*all)[i] = std::max((*all)[i], (*b)[i]);
  return all;
}

}  // namespace tilewright::simulator
