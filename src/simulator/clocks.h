// Happens-before of the blocks of a cluster: what each of their threads knows that threads and asynchronous agents have
// done.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace tilewright::simulator {

// Counts the points of a life at which others can learn of it: of a thread its barriers and fences, of an agent the
// completions of what runs on its own (phases of an mbarrier, groups of a warpgroup). 0 is before everything.
using Clock = uint32_t;

// What somebody knows: by thread of the cluster, then by agent, the clock up to which its deeds are done. None:
// nothing.
using Knowledge = std::shared_ptr<const std::vector<Clock>>;

// Who asks what is done before what he does next: a thread, or the threads of a warp that know the same.
struct Witness {
  const std::vector<Clock>* known = nullptr;
  int64_t thread =
      -1;             // of the cluster, who knows his own deeds; -1: several, who know of each other what `known` says
  int64_t like = -1;  // one of these threads: all of them have fenced what it has
};

// What a thread of the cluster did.
struct Deed {
  int64_t thread = 0;  // of the cluster
  Clock at = 0;
};

// What one block has done in global memory, as a thread of another knows it: all of the eras before this one, and of
// this one what `known` says.
struct FarDeeds {
  uint32_t era = 0;
  int64_t first_thread = 0;  // of the block, in `known`
  Knowledge known;
};
// By number of the block in the grid. Told by atomics that release and acquire, and by fences of the device around
// others (PTX ISA, memory consistency model). None: nothing.
using FarKnowledge = std::shared_ptr<const std::map<uint32_t, FarDeeds>>;

Knowledge join(const Knowledge& a, const Knowledge& b);
FarKnowledge join(const FarKnowledge& a, const FarKnowledge& b);

// All threads of a cluster start at one point, and come to one point again at every barrier that all of them reach: an
// era. What was done in an earlier era of the cluster is known to everybody, and needs no clocks; so is what anybody
// knew of the agents then.
//
// This is the view of one block: threads count from its first.
class Clocks {
 public:
  // Of the first of so many blocks, each of so many threads and agents.
  Clocks(int64_t threads, int64_t agents, uint32_t& eras, int64_t blocks = 1);
  Clocks of_block(int64_t rank) const;
  bool is_alone() const { return all_->now.size() == static_cast<size_t>(threads_); }

  void new_block();
  void new_era();
  uint32_t era() const { return all_->era; }
  bool is_of_block(uint32_t era) const { return era >= all_->first_era; }
  Clock now(int64_t thread) const { return all_->now[place(thread)]; }
  Deed deed(int64_t thread) const { return {first_thread_ + thread, now(thread)}; }
  int64_t agent(int64_t number) const { return static_cast<int64_t>(all_->now.size()) + first_agent_ + number; }
  // Whether what `other` did in this era at that clock is done before what the witness does next.
  bool knows(const Witness& witness, int64_t other, Clock at) const {
    return knows(witness, Deed{first_thread_ + other, at});
  }
  bool knows(const Witness& witness, Deed deed) const {
    return deed.thread == witness.thread || knows_agent(witness, deed.thread, deed.at);
  }
  bool knows(int64_t thread, int64_t other, Clock at) const { return knows(witness(thread), other, at); }
  bool knows_agent(const Witness& witness, int64_t agent, Clock at) const {
    const auto i = static_cast<size_t>(agent);
    return at <= all_->base[i] || (witness.known && (*witness.known)[i] >= at);
  }
  Witness witness(int64_t thread) const { return {all_->known[place(thread)].get(), first_thread_ + thread}; }
  // One for each different state of knowledge among the threads, none of whom counts his own deeds as known to all.
  std::vector<Witness> witnesses(std::span<const int64_t> threads) const;
  // The last clock of an agent that the thread knows.
  Clock known(int64_t thread, int64_t agent) const;

  // What these threads know and have done. What they do next is later.
  Knowledge release(std::span<const int64_t> threads);
  void acquire(std::span<const int64_t> threads, const Knowledge& knowledge);
  // What the thread knows of agents alone.
  Knowledge of_agents(int64_t thread) const;
  // That the agent is as far as that.
  void learn(std::span<const int64_t> threads, int64_t agent, Clock at);
  Knowledge with_agent(const Knowledge& knowledge, int64_t agent, Clock at) const;

  // What the thread, of the block of that number, has done and knows, for those who read what it writes next.
  FarKnowledge release_far(uint32_t block, int64_t thread);
  void acquire_far(int64_t thread, const FarKnowledge& knowledge);
  // Of relaxed atomics: what the thread has read, and what it knew and had done at its last fence of the device, which
  // acquires the one and makes the other.
  void see(int64_t thread, const FarKnowledge& told) {
    if (told) all_->fenced[place(thread)].seen = join(all_->fenced[place(thread)].seen, told);
  }
  const FarKnowledge& fenced(int64_t thread) const { return all_->fenced[place(thread)].done; }
  void fence_device(uint32_t block, int64_t thread);
  // Whether what a thread of another block did is done before what this one does next.
  bool knows_far(int64_t thread, uint32_t block, uint32_t era, Deed deed) const;

  // A proxy fence: what the thread wrote to shared memory before is fenced; with `all`, to global memory too.
  void fence(int64_t thread, bool all);
  // Whether the thread has fenced what it did at that clock, and the witness knows that it has.
  bool is_fenced(const Witness& witness, int64_t thread, Clock at, bool global) const;
  // Whether the witness knows of a fence by somebody who knew then what the thread did at that clock of the era.
  bool is_fenced_by_any(const Witness& witness, int64_t thread, Clock at, uint32_t era) const;

 private:
  struct Fencer {
    uint32_t era;
    Knowledge known;
  };
  struct Acquired {
    Deed by;
    FarKnowledge what;
  };
  struct DeviceFence {
    FarKnowledge seen, done;
  };
  struct Cluster {
    uint32_t& eras;                   // of all clusters: no two share a number
    uint32_t era = 0, first_era = 0;  // first: of the blocks that run
    std::vector<Clock> now = {};      // by thread; grows over all blocks that run here
    std::vector<Clock> base = {};     // by thread and agent: what everybody knows
    std::vector<Knowledge> known = {};
    std::vector<std::vector<Clock>> fences = {};      // by thread, ascending
    std::vector<std::vector<Fencer>> fencers = {};    // what the thread knew at each of them
    std::vector<std::vector<Clock>> all_fences = {};  // those of all memory
    std::vector<Acquired> acquired = {};              // by the blocks that run
    std::vector<DeviceFence> fenced = {};             // by thread
  };
  size_t place(int64_t thread) const { return static_cast<size_t>(first_thread_ + thread); }

  std::shared_ptr<Cluster> all_;
  int64_t threads_, agents_, first_thread_ = 0, first_agent_ = 0;
};

}  // namespace tilewright::simulator
