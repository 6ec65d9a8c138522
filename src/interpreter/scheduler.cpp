// ucontext coroutines. A strand leaves its stack at a blocking operation and comes back when its condition holds.
#include "interpreter/scheduler.h"

#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace tilewright::interpreter {

namespace {
constexpr size_t kStack = size_t{1} << 20;  // pages are only taken when touched
struct Cancelled {};                        // unwinds a strand after another one failed
}  // namespace

struct TurnScheduler::Turn {
  Strand* strand = nullptr;
  TurnScheduler* owner = nullptr;
  ucontext_t context{}, back{};
  void* stack = nullptr;
  bool done = false, cancelled = false;
  std::function<bool()> ready;
  std::function<std::string()> what;
  std::exception_ptr error;
  void* fake_stack = nullptr;  // the sanitizer's, as the next two
  const void* scheduler_stack = nullptr;
  size_t scheduler_size = 0;

  ~Turn() {
    if (stack) munmap(stack, kStack);
  }
};

void LoneScheduler::wait(Strand& strand, std::function<bool()>, std::function<std::string()> what) {
  std::vector<Note> notes = {{fmt::format("{} wait {}", strand.describe(), what()), strand.location()}};
  fail(Code::Deadlock, strand.location(), "deadlock: no thread can go on", {}, std::move(notes));
}

TurnScheduler::TurnScheduler() = default;
TurnScheduler::~TurnScheduler() = default;

void TurnScheduler::enter(unsigned high, unsigned low) {
  auto* turn = reinterpret_cast<Turn*>(static_cast<uintptr_t>(high) << 32 | low);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &turn->scheduler_stack, &turn->scheduler_size);
#endif
  try {
    turn->strand->run();
  } catch (const Cancelled&) {
  } catch (...) {
    turn->error = std::current_exception();
  }
  turn->done = true;
  turn->owner->switch_out(*turn);
}

void TurnScheduler::resume(Turn& turn) {
  current_ = &turn;
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, turn.stack, kStack);
#endif
  swapcontext(&turn.back, &turn.context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  current_ = nullptr;
}

void TurnScheduler::switch_out(Turn& turn) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(turn.done ? nullptr : &turn.fake_stack, turn.scheduler_stack, turn.scheduler_size);
#endif
  swapcontext(&turn.context, &turn.back);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(turn.fake_stack, &turn.scheduler_stack, &turn.scheduler_size);
#endif
}

void TurnScheduler::wait(Strand&, std::function<bool()> ready, std::function<std::string()> what) {
  Turn& turn = *current_;
  turn.ready = std::move(ready), turn.what = std::move(what);
  switch_out(turn);
  if (turn.cancelled) throw Cancelled{};
}

void TurnScheduler::run(std::span<Strand* const> strands) {
  turns_.clear();
  for (Strand* strand : strands) {
    auto turn = std::make_unique<Turn>();
    turn->strand = strand, turn->owner = this;
    turn->stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check_internal(turn->stack != MAP_FAILED, "no memory for the stack of a strand");
    getcontext(&turn->context);
    turn->context.uc_stack.ss_sp = turn->stack, turn->context.uc_stack.ss_size = kStack;
    turn->context.uc_link = nullptr;
    auto address = reinterpret_cast<uintptr_t>(turn.get());
    makecontext(&turn->context, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
    turns_.push_back(std::move(turn));
  }
  for (bool all_done = false; !all_done;) {
    bool progress = false;
    all_done = true;
    for (auto& turn : turns_) {
      if (turn->done) continue;
      all_done = false;
      if (turn->ready && !turn->ready()) continue;
      turn->ready = nullptr;
      progress = true;
      resume(*turn);
      if (!turn->error) continue;
      std::exception_ptr error = turn->error;
      cancel();
      std::rethrow_exception(error);
    }
    if (!all_done && !progress) fail_deadlock();
  }
}

// Lets every strand that is under way unwind its stack.
void TurnScheduler::cancel() {
  for (auto& turn : turns_) {
    turn->cancelled = true;
    bool started = turn->what != nullptr;  // has waited once, so there is something to unwind
    if (!turn->done && started) resume(*turn);
  }
}

void TurnScheduler::fail_deadlock() {
  std::vector<Note> notes;
  SourceLocation first;
  for (auto& turn : turns_) {
    if (turn->done) continue;
    if (notes.empty()) first = turn->strand->location();
    notes.push_back({fmt::format("{} wait {}", turn->strand->describe(), turn->what()), turn->strand->location()});
  }
  cancel();
  fail(Code::Deadlock, first, "deadlock: no thread can go on", {}, std::move(notes));
}

}  // namespace tilewright::interpreter
