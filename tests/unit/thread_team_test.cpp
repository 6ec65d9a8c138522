// Threads for one piece of work.
#include "support/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

namespace tilewright {
namespace {

TEST(RunThreads, EachIsCalledOnceOnAThreadOfItsOwn) {
  const std::thread::id caller = std::this_thread::get_id();
  for (const int wanted : {1, 2, 7}) {
    std::mutex mutex;
    std::set<int> numbers;
    std::set<std::thread::id> threads;
    std::atomic<int> met{0};
    run_threads(wanted, [&](int thread, int count) {
      EXPECT_EQ(count, wanted);
      EXPECT_EQ(thread == 0, std::this_thread::get_id() == caller);
      {
        std::lock_guard lock(mutex);
        EXPECT_TRUE(numbers.insert(thread).second);
        EXPECT_TRUE(threads.insert(std::this_thread::get_id()).second);
      }
      for (++met; met < count;) std::this_thread::yield();  // all are there at once
    });
    EXPECT_EQ(numbers.size(), static_cast<size_t>(wanted));
    EXPECT_TRUE(*numbers.begin() == 0 && *numbers.rbegin() == wanted - 1);
  }
}

TEST(ShareWork, IsDoneWhenItReturns) {
  for (const int wanted : {1, 2, 9}) {
    for (int round = 0; round < 200; ++round) {
      std::atomic<int> next{0}, done{0};
      share_work(wanted, [&] {
        while (next++ < 50) ++done;
      });
      EXPECT_EQ(done, 50);
    }
  }
}

TEST(ShareWork, OthersJoinIn) {
  std::atomic<int> here{0};
  share_work(6, [&] {
    for (++here; here < 6;) std::this_thread::yield();
  });
  EXPECT_EQ(here, 6);
}

}  // namespace
}  // namespace tilewright
