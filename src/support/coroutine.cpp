#include "support/coroutine.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <vector>

#include "support/diagnostic.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace tilewright {
namespace {

// Stacks that a thread is done with, for its next ones: fresh pages cost more than most strands compute.
class Stacks {
 public:
  ~Stacks() {
    for (const auto& [stack, bytes] : kept_) munmap(stack, bytes);
  }
  void* take(size_t bytes) {
    for (size_t i = kept_.size(); i-- > 0;) {
      if (kept_[i].second != bytes) continue;
      void* stack = kept_[i].first;
      kept_.erase(kept_.begin() + static_cast<long>(i));
      return stack;
    }
    void* stack = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check_internal(stack != MAP_FAILED, "no memory for a stack of {} bytes", bytes);
    return stack;
  }
  void give_back(void* stack, size_t bytes) {
    if (kept_.size() < kMost)
      kept_.emplace_back(stack, bytes);
    else
      munmap(stack, bytes);
  }

 private:
  static constexpr size_t kMost = 8;
  std::vector<std::pair<void*, size_t>> kept_;
};
thread_local Stacks stacks;

}  // namespace

struct Coroutine::State {
  std::function<void()> body;
  ucontext_t context{}, back{};
  void* stack = nullptr;
  size_t stack_bytes = 0;
  bool started = false, done = false;
  void* fake_stack = nullptr;  // the sanitizer's, as the next two
  const void* outer_stack = nullptr;
  size_t outer_bytes = 0;

  ~State() {
    if (stack) stacks.give_back(stack, stack_bytes);
  }
  static void enter(unsigned high, unsigned low) {
    auto* state = reinterpret_cast<State*>(static_cast<uintptr_t>(high) << 32 | low);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &state->outer_stack, &state->outer_bytes);
#endif
    state->body();
    state->done = true;
    state->leave();
  }
  void leave() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(done ? nullptr : &fake_stack, outer_stack, outer_bytes);
#endif
    swapcontext(&context, &back);
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(fake_stack, &outer_stack, &outer_bytes);
#endif
  }
};

Coroutine::Coroutine(std::function<void()> body, size_t stack_bytes) : state_(std::make_unique<State>()) {
  constexpr size_t kPage = 4096;
  State& s = *state_;
  s.body = std::move(body), s.stack_bytes = (stack_bytes + kPage - 1) / kPage * kPage;
  s.stack = stacks.take(s.stack_bytes);
  getcontext(&s.context);
  s.context.uc_stack.ss_sp = s.stack, s.context.uc_stack.ss_size = s.stack_bytes;
  s.context.uc_link = nullptr;
  const auto address = reinterpret_cast<uintptr_t>(&s);
  makecontext(&s.context, reinterpret_cast<void (*)()>(State::enter), 2, static_cast<unsigned>(address >> 32),
              static_cast<unsigned>(address));
}

Coroutine::~Coroutine() = default;

void Coroutine::resume() {
  State& s = *state_;
  s.started = true;
#if defined(__SANITIZE_ADDRESS__)
  void* fake = nullptr;
  __sanitizer_start_switch_fiber(&fake, s.stack, s.stack_bytes);
#endif
  swapcontext(&s.back, &s.context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
}

void Coroutine::leave() { state_->leave(); }
bool Coroutine::started() const { return state_->started; }
bool Coroutine::done() const { return state_->done; }

}  // namespace tilewright
