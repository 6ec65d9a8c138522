#include "support/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

// OpenMP's library comes with kernels. A program that is linked with one may have told it how many threads to use.
extern "C" int omp_get_max_threads() __attribute__((weak));

namespace tilewright {
namespace {

// The first number of OMP_NUM_THREADS, which may have one for each level of nesting; 0 if it says nothing of use.
int wished_threads() {
  const char* wish = std::getenv("OMP_NUM_THREADS");
  if (!wish) return 0;
  while (*wish == ' ') ++wish;
  int threads = 0;
  const auto [stop, error] = std::from_chars(wish, wish + std::strlen(wish), threads);
  const bool ends = *stop == '\0' || *stop == ',' || *stop == ' ';
  return error == std::errc() && ends && threads >= 1 && threads <= 65536 ? threads : 0;
}

// Work that threads may join until its owner finds nothing left. Threads begin others, as in a heap (1, the owner,
// begins 2 and 3), so that little work is not kept waiting by many threads.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  function_ref<void()>* work;
  int wanted;
  int working = 0;
};

void begin_others(const std::shared_ptr<Shared>& shared, int number);

void join_in(const std::shared_ptr<Shared>& shared, int number) {
  function_ref<void()>* work;
  {
    std::lock_guard lock(shared->mutex);
    if (!(work = shared->work)) return;
    ++shared->working;
  }
  begin_others(shared, number);
  (*work)();
  std::lock_guard lock(shared->mutex);
  if (--shared->working == 0) shared->changed.notify_all();
}

void begin_others(const std::shared_ptr<Shared>& shared, int number) {
  try {
    for (const int other : {2 * number, 2 * number + 1})
      if (other <= shared->wanted) std::thread([shared, other] { join_in(shared, other); }).detach();
  } catch (const std::system_error&) {  // no more threads: those that are there do it
  }
}

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

int usual_threads() {
  if (omp_get_max_threads) return omp_get_max_threads();
  if (const int wished = wished_threads()) return wished;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

void share_work(int wanted, function_ref<void()> work) {
  const auto shared = std::make_shared<Shared>();
  shared->work = &work, shared->wanted = wanted;
  begin_others(shared, 1);
  work();
  std::unique_lock lock(shared->mutex);
  shared->work = nullptr;
  shared->changed.wait(lock, [&] { return shared->working == 0; });
}

void run_threads(int wanted, function_ref<void(int thread, int count)> body) {
  std::promise<int> count;
  const std::shared_future<int> known = count.get_future().share();
  std::vector<std::thread> others;
  try {
    for (int i = 1; i < wanted; ++i) others.emplace_back([&body, i, known] { body(i, known.get()); });
  } catch (const std::system_error&) {  // no more threads: those that are there do it
  }
  const int all = static_cast<int>(others.size()) + 1;
  count.set_value(all);
  body(0, all);
  for (std::thread& other : others) other.join();
}

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
