// Strands as coroutines on stacks of their own, in turns, always in the same order.
#pragma once
#include <memory>
#include <vector>

#include "interpreter/strand.h"

namespace tilewright::interpreter {

// For launches of one strand a block: who waits for what is not there waits for ever.
class LoneScheduler : public Scheduler {
 public:
  void wait(Strand& strand, std::function<bool()> ready, std::function<std::string()> what) override;
};

class TurnScheduler : public Scheduler {
 public:
  TurnScheduler();
  ~TurnScheduler() override;
  // Runs all strands to their ends. The first error stops them all.
  void run(std::span<Strand* const> strands);
  void wait(Strand& strand, std::function<bool()> ready, std::function<std::string()> what) override;

 private:
  struct Turn;
  void resume(Turn& turn);
  void cancel();
  [[noreturn]] void fail_deadlock();

  std::vector<std::unique_ptr<Turn>> turns_;
  Turn* current_ = nullptr;
};

}  // namespace tilewright::interpreter
