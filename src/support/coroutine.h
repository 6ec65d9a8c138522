// A function on a stack of its own, which may leave it half-way and be resumed there, always by the same thread.
#pragma once
#include <functional>
#include <memory>

namespace tilewright {

class Coroutine {
 public:
  // The body must not throw, and must end: what stands on its stack is not unwound otherwise. Pages of the stack are
  // only taken when touched.
  explicit Coroutine(std::function<void()> body, size_t stack_bytes = size_t{1} << 20);
  ~Coroutine();
  Coroutine(const Coroutine&) = delete;
  Coroutine& operator=(const Coroutine&) = delete;

  // Runs it from where it left to where it leaves again, or to its end.
  void resume();
  // From inside: back to who resumed it.
  void leave();
  bool started() const;
  bool done() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewright
