#include "support/thread_team.h"

#include <pthread.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace tilewright {
namespace {

// A thread that runs one body after the other while its owner waits. It is never joined: it ends with the process.
class Runner {
 public:
  Runner() {
    std::thread([this] { serve(); }).detach();
  }

  void run(function_ref<void()> body) {
    std::unique_lock lock(mutex_);
    body_ = &body, error_ = nullptr;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !body_; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return body_; });
      try {
        (*body_)();
      } catch (...) {
        error_ = std::current_exception();
      }
      body_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  function_ref<void()>* body_ = nullptr;
  std::exception_ptr error_;
};

// Of the calling thread. A child has one thread, a copy of the one that forked.
thread_local bool had_team = false;
thread_local bool lost_team = false;    // had one before the process was forked
thread_local Runner* runner = nullptr;  // if lost_team: where teams are begun; the one of a parent has no thread here

void forget_teams() {
  lost_team |= had_team;
  had_team = false;
  runner = nullptr;
}

}  // namespace

void run_team(function_ref<void()> body) {
  static const int watched = pthread_atfork(nullptr, nullptr, forget_teams);
  (void)watched;  // out of memory at most: nothing is lost but what is told above
  if (!lost_team) {
    had_team = true;
    return body();
  }
  if (!runner) runner = new Runner;
  runner->run(body);
}

}  // namespace tilewright
