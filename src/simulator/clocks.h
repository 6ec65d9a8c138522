// Happens-before of one block: what each of its threads knows that the others have done.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tilewright::simulator {

// Counts the points of a thread's life at which others can learn of it: its barriers. 0 is before everything.
using Clock = uint32_t;

// What somebody knows: by thread, the clock up to which its deeds are done. None: nothing.
using Knowledge = std::shared_ptr<const std::vector<Clock>>;

// All threads of a block start at one point, and come to one point again at every barrier that all of them reach: an
// era. What was done in an earlier era of the block is known to everybody, and needs no clocks.
class Clocks {
 public:
  Clocks(int64_t threads, uint32_t& eras);

  void new_era();
  uint32_t era() const { return era_; }
  Clock now(int64_t thread) const { return now_[static_cast<size_t>(thread)]; }
  // Whether what `other` did in this era at that clock is done before what `thread` does next.
  bool knows(int64_t thread, int64_t other, Clock at) const {
    if (thread == other) return true;
    const Knowledge& k = known_[static_cast<size_t>(thread)];
    return k && (*k)[static_cast<size_t>(other)] >= at;
  }
  // What these threads know and have done. What they do next is later.
  Knowledge release(std::span<const int64_t> threads);
  void acquire(std::span<const int64_t> threads, const Knowledge& knowledge);

 private:
  uint32_t& eras_;  // of all blocks: no two share a number
  uint32_t era_ = 0;
  std::vector<Clock> now_;
  std::vector<Knowledge> known_;
};

Knowledge join(const Knowledge& a, const Knowledge& b);

}  // namespace tilewright::simulator
