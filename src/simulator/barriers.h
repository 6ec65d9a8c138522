// The hardware barriers of a block (PTX ISA, "bar, barrier"): 16, each counts the threads that arrive.
#pragma once
#include <map>
#include <memory>

#include "interpreter/code.h"
#include "simulator/clocks.h"
#include "simulator/timeline.h"

namespace tilewright::simulator {

// One filling of a barrier. Who waits keeps it, for the barrier may be filled again before he goes on.
struct Phase {
  int64_t count = 0, arrived = 0;
  const interpreter::Step* first = nullptr;  // the statement of the first arrival
  bool done = false;
  bool everybody_waits = true;  // none only arrived
  bool is_era = false;          // of all threads: they start anew
  int64_t tally = 0;            // of a vote
  Knowledge knowledge;
  MeetingClock clock;
};

class Barriers {
 public:
  explicit Barriers(int64_t threads) : threads_(threads) {}
  void reset() { open_.clear(), left_ = 0; }

  // The phase that is being filled, opened by this arrival if there is none.
  std::shared_ptr<Phase> open(int64_t barrier, int64_t count, const interpreter::Step& step) {
    std::shared_ptr<Phase>& phase = open_[barrier];
    if (!phase) phase = std::make_shared<Phase>(), phase->count = count, phase->first = &step;
    return phase;
  }
  void close(int64_t barrier) { open_.erase(barrier); }
  // The statement at which threads wait for the whole block; none: nobody does.
  const interpreter::Step* waits_for_block() const {
    const auto at = open_.find(0);
    return at == open_.end() ? nullptr : at->second->first;
  }
  void leave(int64_t count) { left_ += count; }
  int64_t left() const { return left_; }  // threads that are done with the launch
  int64_t threads() const { return threads_; }

 private:
  int64_t threads_, left_ = 0;
  std::map<int64_t, std::shared_ptr<Phase>> open_;
};

}  // namespace tilewright::simulator
