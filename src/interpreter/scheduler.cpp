// A strand leaves its stack at a blocking operation and comes back when its condition holds.
#include "interpreter/scheduler.h"

#include "support/coroutine.h"

namespace tilewright::interpreter {

namespace {
struct Cancelled {};  // unwinds a strand after another one failed
}  // namespace

struct TurnScheduler::Turn {
  explicit Turn(Strand* runs) : strand(runs), coroutine([this] { run(); }) {}
  void run() {
    try {
      strand->run();
    } catch (const Cancelled&) {
    } catch (...) {
      error = std::current_exception();
    }
  }

  Strand* strand;
  bool cancelled = false;
  std::function<bool()> ready;
  std::function<std::string()> what;
  std::exception_ptr error;
  Coroutine coroutine;
};

void LoneScheduler::wait(Strand& strand, std::function<bool()>, std::function<std::string()> what) {
  std::vector<Note> notes = {{fmt::format("{} wait {}", strand.describe(), what()), strand.location()}};
  fail(Code::Deadlock, strand.location(), "deadlock: no thread can go on", {}, std::move(notes));
}

TurnScheduler::TurnScheduler() = default;
TurnScheduler::~TurnScheduler() = default;

void TurnScheduler::resume(Turn& turn) {
  current_ = &turn;
  turn.coroutine.resume();
  current_ = nullptr;
}

void TurnScheduler::wait(Strand&, std::function<bool()> ready, std::function<std::string()> what) {
  Turn& turn = *current_;
  turn.ready = std::move(ready), turn.what = std::move(what);
  turn.coroutine.leave();
  if (turn.cancelled) throw Cancelled{};
}

void TurnScheduler::run(std::span<Strand* const> strands) {
  turns_.clear();
  for (Strand* strand : strands) turns_.push_back(std::make_unique<Turn>(strand));
  for (bool all_done = false; !all_done;) {
    bool progress = false;
    all_done = true;
    for (auto& turn : turns_) {
      if (turn->coroutine.done()) continue;
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
    if (turn->coroutine.started() && !turn->coroutine.done()) resume(*turn);
  }
}

void TurnScheduler::fail_deadlock() {
  std::vector<Note> notes;
  SourceLocation first;
  for (auto& turn : turns_) {
    if (turn->coroutine.done()) continue;
    if (notes.empty()) first = turn->strand->location();
    notes.push_back({fmt::format("{} wait {}", turn->strand->describe(), turn->what()), turn->strand->location()});
  }
  cancel();
  fail(Code::Deadlock, first, "deadlock: no thread can go on", {}, std::move(notes));
}

}  // namespace tilewright::interpreter
