#include "simulator/clocks.h"

#include <algorithm>
#include <array>

namespace tilewright::simulator {

Clocks::Clocks(int64_t threads, int64_t agents, uint32_t& eras, int64_t blocks)
    : all_(std::make_shared<Cluster>(Cluster{eras})), threads_(threads), agents_(agents) {
  const auto all = static_cast<size_t>(threads * blocks);
  all_->now.resize(all), all_->known.resize(all), all_->fences.resize(all), all_->all_fences.resize(all);
  all_->fencers.resize(all), all_->fenced.resize(all), all_->base.resize(all + static_cast<size_t>(agents * blocks));
  new_era();
}

Clocks Clocks::of_block(int64_t rank) const {
  Clocks view = *this;
  view.first_thread_ = rank * threads_, view.first_agent_ = rank * agents_;
  return view;
}

void Clocks::new_block() {
  new_era();
  all_->first_era = all_->era;
  std::fill(all_->base.begin() + static_cast<std::ptrdiff_t>(all_->now.size()), all_->base.end(), 0);
  for (std::vector<Clock>& fences : all_->fences) fences.clear();
  for (std::vector<Fencer>& fencers : all_->fencers) fencers.clear();
  for (std::vector<Clock>& fences : all_->all_fences) fences.clear();
  all_->acquired.clear();
  std::fill(all_->fenced.begin(), all_->fenced.end(), DeviceFence{});
}

void Clocks::fence_device(uint32_t block, int64_t thread) {
  DeviceFence& f = all_->fenced[place(thread)];
  acquire_far(thread, f.seen);
  f = {nullptr, release_far(block, thread)};
}

void Clocks::new_era() {
  Cluster& c = *all_;
  c.era = ++c.eras;
  const std::vector<Clock>* last = nullptr;
  for (Knowledge& k : c.known) {
    if (k && k.get() != last)
      for (size_t i = c.now.size(); i < c.base.size(); ++i) c.base[i] = std::max(c.base[i], (*k)[i]);
    last = k.get();
  }
  std::fill(c.known.begin(), c.known.end(), nullptr);
  for (size_t t = 0; t < c.now.size(); ++t) c.base[t] = c.now[t]++;
}

std::vector<Witness> Clocks::witnesses(std::span<const int64_t> threads) const {
  std::vector<Witness> all;
  for (const int64_t t : threads) {
    const std::vector<Clock>* known = all_->known[place(t)].get();
    const auto is_like = [&](int64_t other) {
      const auto &mine = all_->fencers[place(t)], &others = all_->fencers[static_cast<size_t>(other)];
      if (mine.empty() || others.empty()) return mine.empty() == others.empty();
      return mine.back().era == others.back().era && mine.back().known == others.back().known;
    };
    if (std::none_of(all.begin(), all.end(), [&](const Witness& w) { return w.known == known && is_like(w.like); }))
      all.push_back({known, threads.size() == 1 ? first_thread_ + t : -1, first_thread_ + t});
  }
  return all;
}

Clock Clocks::known(int64_t thread, int64_t agent) const {
  const Knowledge& k = all_->known[place(thread)];
  const Clock base = all_->base[static_cast<size_t>(agent)];
  return k ? std::max(base, (*k)[static_cast<size_t>(agent)]) : base;
}

Knowledge Clocks::release(std::span<const int64_t> threads) {
  auto all = std::make_shared<std::vector<Clock>>(all_->base.size());
  const std::vector<Clock>* last = nullptr;  // threads that left one barrier know the same
  for (const int64_t t : threads) {
    const size_t i = place(t);
    const std::vector<Clock>* known = all_->known[i].get();
    if (known && known != last)
      for (size_t j = 0; j < all->size(); ++j) (*all)[j] = std::max((*all)[j], (*known)[j]);
    last = known;
    (*all)[i] = std::max((*all)[i], all_->now[i]);
    ++all_->now[i];
  }
  return all;
}

void Clocks::acquire(std::span<const int64_t> threads, const Knowledge& knowledge) {
  Knowledge before, after;
  for (const int64_t t : threads) {
    Knowledge& k = all_->known[place(t)];
    if (!after || k != before) before = k, after = join(k, knowledge);
    k = after;
  }
}

Knowledge Clocks::with_agent(const Knowledge& knowledge, int64_t agent, Clock at) const {
  auto all = knowledge ? std::make_shared<std::vector<Clock>>(*knowledge)
                       : std::make_shared<std::vector<Clock>>(all_->base.size());
  Clock& clock = (*all)[static_cast<size_t>(agent)];
  clock = std::max(clock, at);
  return all;
}

void Clocks::learn(std::span<const int64_t> threads, int64_t agent, Clock at) {
  Knowledge before, after;
  for (const int64_t t : threads) {
    Knowledge& k = all_->known[place(t)];
    if (!after || k != before) before = k, after = with_agent(k, agent, at);
    k = after;
  }
}

Knowledge Clocks::of_agents(int64_t thread) const {
  const Knowledge& known = all_->known[place(thread)];
  if (!known) return nullptr;
  auto agents = std::make_shared<std::vector<Clock>>(*known);
  std::fill_n(agents->begin(), all_->now.size(), 0);
  return agents;
}

FarKnowledge Clocks::release_far(uint32_t block, int64_t thread) {
  FarKnowledge all = std::make_shared<std::map<uint32_t, FarDeeds>>(
      std::map<uint32_t, FarDeeds>{{block, {all_->era, first_thread_, nullptr}}});
  const Witness who = witness(thread);
  for (const Acquired& a : all_->acquired)
    if (knows(who, a.by)) all = join(all, a.what);
  auto mine = std::make_shared<std::map<uint32_t, FarDeeds>>(*all);
  (*mine)[block].known = release(std::array{thread});
  return mine;
}

void Clocks::acquire_far(int64_t thread, const FarKnowledge& knowledge) {
  if (!knowledge) return;
  // Of blocks of this cluster, in this era, it is what a barrier would tell.
  for (const auto& [block, deeds] : *knowledge)
    if (deeds.era == all_->era) acquire(std::array{thread}, deeds.known);
  const Deed by = deed(thread);
  for (Acquired& a : all_->acquired)
    if (a.by.thread == by.thread && a.by.at == by.at) {
      if (a.what != knowledge) a.what = join(a.what, knowledge);
      return;
    }
  all_->acquired.push_back({by, knowledge});
}

bool Clocks::knows_far(int64_t thread, uint32_t block, uint32_t era, Deed deed) const {
  const Witness who = witness(thread);
  return std::any_of(all_->acquired.begin(), all_->acquired.end(), [&](const Acquired& a) {
    const auto of_block = a.what->find(block);
    if (of_block == a.what->end()) return false;
    const FarDeeds& done = of_block->second;
    const auto other = static_cast<size_t>(done.first_thread + deed.thread);
    return (done.era > era || (done.era == era && (*done.known)[other] >= deed.at)) && knows(who, a.by);
  });
}

// The fence is a deed of the clock after those that it fences.
void Clocks::fence(int64_t thread, bool all) {
  const size_t i = place(thread);
  all_->fences[i].push_back(all_->now[i]), all_->fencers[i].push_back({all_->era, all_->known[i]});
  if (all) all_->all_fences[i].push_back(all_->now[i]);
  ++all_->now[i];
}

bool Clocks::is_fenced(const Witness& witness, int64_t thread, Clock at, bool global) const {
  const std::vector<Clock>& fences = (global ? all_->all_fences : all_->fences)[place(thread)];
  const auto first = std::lower_bound(fences.begin(), fences.end(), at);
  return first != fences.end() && knows(witness, thread, *first + 1);
}

bool Clocks::is_fenced_by_any(const Witness& witness, int64_t thread, Clock at, uint32_t era) const {
  for (size_t i = 0; i < all_->now.size(); ++i) {
    const std::vector<Clock>& fences = all_->fences[i];
    const auto other = static_cast<int64_t>(i);
    // What somebody knows only grows: the last fence that the witness knows of counts.
    size_t f = fences.size();
    while (f > 0 && other != witness.like && !knows(witness, Deed{other, fences[f - 1] + 1})) --f;
    if (f == 0) continue;
    const Fencer& fencer = all_->fencers[i][f - 1];
    if (era < fencer.era || (i == place(thread) && fences[f - 1] >= at) ||
        (fencer.known && (*fencer.known)[place(thread)] >= at))
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

FarKnowledge join(const FarKnowledge& a, const FarKnowledge& b) {
  if (!a || !b || a == b) return a ? a : b;
  auto all = std::make_shared<std::map<uint32_t, FarDeeds>>(*a);
  for (const auto& [block, deeds] : *b) {
    FarDeeds& mine = all->try_emplace(block, deeds).first->second;
    if (mine.era == deeds.era)
      mine.known = join(mine.known, deeds.known);
    else if (mine.era < deeds.era)
      mine = deeds;
  }
  return all;
}

}  // namespace tilewright::simulator
