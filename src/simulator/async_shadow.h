// Beside every 16 bytes of shared memory: which asynchronous operations touch them. They run on their own from where
// they are issued until somebody has waited for them, so that any other touch must know their end, or be known where
// they are issued.
#pragma once
#include <optional>
#include <vector>

#include "simulator/queues.h"
#include "simulator/shadow.h"

namespace tilewright::simulator {

struct AsyncAccess {
  enum class Kind : uint8_t {
    None,
    Load,   // a TMA load writes; its agent is the mbarrier
    Store,  // a TMA store reads; its end is known by the thread that drains its queue
    Wgmma,  // reads; its agent is the warpgroup, or the warp
  };
  Kind kind = Kind::None;
  uint16_t thread = 0;  // that issued it, the first of a warp
  uint16_t site = 0;
  Clock clock = 0;    // of the agent; of a store the number of its group
  int64_t agent = 0;  // in the clocks
};

struct AsyncConflict {
  enum class Kind : uint8_t { Async, Thread, Unfenced };
  Kind kind;
  AsyncAccess async;  // Async
  Conflict thread;    // Thread, Unfenced
};

class AsyncShadow {
 public:
  static constexpr uint64_t kCellBits = 128;

  explicit AsyncShadow(int64_t bytes) : cells_(static_cast<size_t>(bytes + 15) / 16), plain_(cells_.size()) {}
  void reset();

  // A thread's touch of the bits [first, last].
  std::optional<AsyncConflict> touch(uint64_t first, uint64_t last, bool writes, const Witness& who,
                                     const Clocks& clocks, const Queues& queues);
  // An asynchronous operation that is issued now touches the 16 bytes. `plain` is the shadow of the threads' touches.
  std::optional<AsyncConflict> issue(uint64_t cell, const AsyncAccess& me, std::span<const Witness> who, Shadow& plain,
                                     const Clocks& clocks, const Queues& queues);

 private:
  struct Cell {
    AsyncAccess writer;
    std::vector<AsyncAccess> readers;
  };
  bool is_done(const AsyncAccess& access, const Witness& who, const Clocks& clocks, const Queues& queues) const;

  std::vector<Cell> cells_;
  std::vector<uint8_t> plain_;  // whether threads have touched it since the last asynchronous write
  bool active_ = false;
};

}  // namespace tilewright::simulator
