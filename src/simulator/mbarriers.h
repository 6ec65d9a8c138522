// mbarriers (PTX ISA 9.7.13.15): a phase is complete when all arrivals and all announced bytes are there. Each is an
// agent whose clock counts its phases: what completes on it is known to those who know the phase.
#pragma once
#include <map>
#include <vector>

#include "interpreter/code.h"
#include "simulator/clocks.h"
#include "simulator/timeline.h"

namespace tilewright::simulator {

struct Mbarrier {
  int64_t agent = 0;      // in the clocks
  int64_t count = 0;      // arrivals that a phase takes
  int64_t pending = 0;    // arrivals still missing
  int64_t bytes = 0;      // announced and not yet there; negative: there and not yet announced
  int64_t completed = 0;  // phases
  Knowledge arriving;     // of those who have arrived in this phase
  Knowledge last;         // of those who have in the last complete one, and that it is complete
  Clock delivered = 0;    // the last phase into which bytes were copied, counted from 1
  // Who initialized it, where and when; no step: nobody.
  const interpreter::Step* initialized = nullptr;
  int64_t by = 0;
  Clock at = 0;
  MeetingClock clock;

  // The phase that is under way, as a clock of the agent once it is complete.
  Clock phase() const { return static_cast<Clock>(completed + 1); }
  void init(int64_t arrivals, const interpreter::Step& step, int64_t thread, Clock now) {
    count = pending = arrivals, bytes = completed = 0;
    arriving = last = nullptr, delivered = 0, clock = {};
    initialized = &step, by = thread, at = now;
  }
  // True if the phase is complete now.
  bool settle(const Clocks& clocks) {
    if (pending != 0 || bytes != 0) return false;
    ++completed;
    clock.complete();
    pending = count;
    last = clocks.with_agent(arriving, agent, static_cast<Clock>(completed));
    arriving = nullptr;
    return true;
  }
};

// Those of a block.
class Mbarriers {
 public:
  static constexpr int64_t kMostBytes = (1 << 20) - 1;  // that a phase can count (PTX ISA, "tx-count")

  explicit Mbarriers(const interpreter::LaunchCode& code) {
    for (const uint32_t id : code.on_chip) {
      const interpreter::BufferCode& b = code.buffers[id];
      if (b.space != ir::Space::Barrier) continue;
      first_[id] = all_.size();
      for (int64_t i = 0; i < b.elements; ++i) all_.emplace_back();
    }
  }
  void reset(const Clocks& clocks) {
    for (size_t i = 0; i < all_.size(); ++i) all_[i] = {}, all_[i].agent = clocks.agent(static_cast<int64_t>(i));
  }
  size_t count() const { return all_.size(); }
  Mbarrier& at(uint32_t root, int64_t element) { return all_[first_.at(root) + static_cast<size_t>(element)]; }
  std::vector<Mbarrier>& all() { return all_; }

 private:
  std::map<uint32_t, size_t> first_;  // by root
  std::vector<Mbarrier> all_;
};

}  // namespace tilewright::simulator
