// Happens-before of one block: what each of its threads knows that threads and asynchronous agents have done.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tilewright::simulator {

// Counts the points of a life at which others can learn of it: of a thread its barriers and fences, of an agent the
// completions of what runs on its own (phases of an mbarrier, groups of a warpgroup). 0 is before everything.
using Clock = uint32_t;

// What somebody knows: by thread, then by agent, the clock up to which its deeds are done. None: nothing.
using Knowledge = std::shared_ptr<const std::vector<Clock>>;

// Who asks what is done before what he does next: a thread, or the threads of a warp that know the same.
struct Witness {
  const std::vector<Clock>* known = nullptr;
  int64_t thread = -1;  // who knows his own deeds; -1: several threads, who know of each other what `known` says
  int64_t like = -1;    // one of these threads: all of them have fenced what it has
};

// All threads of a block start at one point, and come to one point again at every barrier that all of them reach: an
// era. What was done in an earlier era of the block is known to everybody, and needs no clocks; so is what anybody knew
// of the agents then.
class Clocks {
 public:
  Clocks(int64_t threads, int64_t agents, uint32_t& eras);

  void new_block();
  void new_era();
  uint32_t era() const { return era_; }
  bool is_of_block(uint32_t era) const { return era >= first_era_; }
  Clock now(int64_t thread) const { return now_[static_cast<size_t>(thread)]; }
  int64_t agent(int64_t number) const { return threads_ + number; }
  // Whether what `other` did in this era at that clock is done before what the witness does next.
  bool knows(const Witness& witness, int64_t other, Clock at) const {
    const auto i = static_cast<size_t>(other);
    return other == witness.thread || at <= base_[i] || (witness.known && (*witness.known)[i] >= at);
  }
  bool knows(int64_t thread, int64_t other, Clock at) const { return knows(witness(thread), other, at); }
  Witness witness(int64_t thread) const { return {known_[static_cast<size_t>(thread)].get(), thread}; }
  // One for each different state of knowledge among the threads, none of whom counts his own deeds as known to all.
  std::vector<Witness> witnesses(std::span<const int64_t> threads) const;
  // The last clock of an agent that the thread knows.
  Clock known(int64_t thread, int64_t agent) const;

  // What these threads know and have done. What they do next is later.
  Knowledge release(std::span<const int64_t> threads);
  void acquire(std::span<const int64_t> threads, const Knowledge& knowledge);
  // That the agent is as far as that.
  void learn(std::span<const int64_t> threads, int64_t agent, Clock at);
  Knowledge with_agent(const Knowledge& knowledge, int64_t agent, Clock at) const;

  // A proxy fence: what the thread wrote to shared memory before is fenced; with `all`, to global memory too.
  void fence(int64_t thread, bool all);
  // Whether the thread has fenced what it did at that clock, and the witness knows that it has.
  bool is_fenced(const Witness& witness, int64_t thread, Clock at, bool global) const;
  // Whether the witness knows of a fence by somebody who knew then what the thread did at that clock of the era.
  bool is_fenced_by_any(const Witness& witness, int64_t thread, Clock at, uint32_t era) const;

 private:
  uint32_t& eras_;                    // of all blocks: no two share a number
  uint32_t era_ = 0, first_era_ = 0;  // first: of this block
  int64_t threads_;
  std::vector<Clock> now_;   // by thread; grows over all blocks that run here
  std::vector<Clock> base_;  // by thread and agent: what everybody knows
  std::vector<Knowledge> known_;
  std::vector<std::vector<Clock>> fences_;  // by thread, ascending
  struct Fencer {
    uint32_t era;
    Knowledge known;
  };
  std::vector<std::vector<Fencer>> fencers_;    // what the thread knew at each of them
  std::vector<std::vector<Clock>> all_fences_;  // those of all memory
};

Knowledge join(const Knowledge& a, const Knowledge& b);

}  // namespace tilewright::simulator
