#include "runtime/strands.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "support/coroutine.h"
#include "support/thread_team.h"

namespace tilewright::runtime {
namespace {

constexpr size_t kOwnStack = size_t{256} << 10;  // beside the tiles

// The blocks of a launch that meet.
class Grid {
 public:
  Grid(int64_t strands, int threads) : strands_(strands), running_(threads) {}

  uint64_t held() {
    std::lock_guard lock(mutex_);
    return held_;
  }
  // A strand has come to the barrier.
  void arrive() {
    std::lock_guard lock(mutex_);
    if (++arrived_ < strands_) return;
    arrived_ = 0, ++held_, idle_ = 0;
    changed_.notify_all();
  }
  // A thread none of whose strands could go on while the barrier had been held so often: until it is held again. False:
  // that will never be.
  bool sleep(uint64_t seen) {
    std::unique_lock lock(mutex_);
    if (held_ != seen) return true;
    ++idle_;
    look_for_end();
    changed_.wait(lock, [&] { return held_ != seen || stuck_; });
    return held_ != seen;
  }
  void leave() {  // a thread whose strands are done
    std::lock_guard lock(mutex_);
    --running_;
    look_for_end();
  }
  bool stuck() {
    std::lock_guard lock(mutex_);
    return stuck_;
  }

 private:
  void look_for_end() {
    if (running_ == 0 || idle_ < running_) return;
    stuck_ = true;
    changed_.notify_all();
  }

  const int64_t strands_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t arrived_ = 0;
  uint64_t held_ = 0;  // how often all have met
  int running_ = 0, idle_ = 0;
  bool stuck_ = false;
};

// The strands of one thread.
class Turns {
 public:
  explicit Turns(Grid* grid) : grid_(grid) {}
  Grid* grid() const { return grid_; }

  void add(std::function<void()> code, size_t stack_bytes) {
    turns_.push_back(std::make_unique<Turn>(std::move(code), stack_bytes));
  }
  // Until all are done. False if they were told that what they wait for will never come.
  bool run() {
    while (!turns_.empty()) {
      const uint64_t seen = grid_ ? grid_->held() : 0;
      bool progress = false;
      for (size_t i = 0; i < turns_.size(); ++i) {  // a turn may add others
        Turn& turn = *turns_[i];
        if (!stuck_ && turn.ready && !turn.ready(turn.argument)) continue;
        turn.ready = nullptr, progress = true;
        current_ = &turn;
        turn.coroutine.resume();
        current_ = nullptr;
      }
      std::erase_if(turns_, [](const auto& turn) { return turn->coroutine.done(); });
      if (!progress && !(grid_ && grid_->sleep(seen))) stuck_ = true;
    }
    return !stuck_;
  }
  // From inside one.
  int wait(int (*ready)(const void*), const void* argument) {
    if (stuck_) return 1;
    if (ready && ready(argument)) return 0;
    current_->ready = ready, current_->argument = argument;
    current_->coroutine.leave();
    return stuck_;
  }
  // From inside one: until the others that it added have counted down to 0, whatever becomes of them.
  int join(const int& left) {
    const auto all_done = [](const void* n) { return static_cast<int>(*static_cast<const int*>(n) == 0); };
    while (left > 0) {
      current_->ready = all_done, current_->argument = &left;
      current_->coroutine.leave();
    }
    return stuck_;
  }

 private:
  struct Turn {
    Turn(std::function<void()> code, size_t stack_bytes) : coroutine(std::move(code), stack_bytes) {}
    Coroutine coroutine;
    int (*ready)(const void*) = nullptr;
    const void* argument = nullptr;
  };

  Grid* const grid_;
  std::vector<std::unique_ptr<Turn>> turns_;
  Turn* current_ = nullptr;
  bool stuck_ = false;
};

thread_local Turns* turns_here = nullptr;

}  // namespace

int run_strands(void*, int count, void (*const* code)(void*), void* const* arguments) {
  int left = count;
  auto add = [&](Turns& turns) {
    for (int i = 0; i < count; ++i)
      turns.add([&left, run = code[i], argument = arguments[i]] { run(argument), --left; }, kOwnStack);
  };
  if (turns_here) {
    add(*turns_here);
    return turns_here->join(left);
  }
  Turns turns(nullptr);
  add(turns);
  turns_here = &turns;
  const bool done = turns.run();
  turns_here = nullptr;
  return !done;
}

int run_blocks(void*, int threads, long long blocks, int strands, long long stack_bytes, void (*code)(void*, long long),
               void* argument) {
  if (blocks <= 0) return 0;
  const int wanted = static_cast<int>(std::min<long long>(threads, blocks));
  std::unique_ptr<Grid> grid;
  std::once_flag once;
  run_threads(wanted, [&](int thread, int count) {
    std::call_once(once, [&] { grid = std::make_unique<Grid>(blocks * strands, count); });
    Turns turns(grid.get());
    for (long long b = thread; b < blocks; b += count)
      turns.add([=] { code(argument, b); }, kOwnStack + static_cast<size_t>(stack_bytes));
    turns_here = &turns;
    turns.run();
    turns_here = nullptr;
    grid->leave();
  });
  return grid->stuck();
}

int wait_for(void*, int (*ready)(const void*), const void* argument) {
  if (turns_here) return turns_here->wait(ready, argument);
  return ready && !ready(argument);
}

int sync_grid(void*) {
  struct Meeting {
    Grid* grid;
    uint64_t held;
  };
  const Meeting meeting{turns_here->grid(), turns_here->grid()->held()};
  meeting.grid->arrive();
  const auto met = [](const void* m) {
    const auto& at = *static_cast<const Meeting*>(m);
    return static_cast<int>(at.grid->held() != at.held);
  };
  return turns_here->wait(met, &meeting);
}

}  // namespace tilewright::runtime
