// Thread code with collectives under every kind of control: the CPU engine, which takes it apart into loops over the
// threads, leaves what the interpreter leaves.
#include <gtest/gtest.h>

#include "tilewright/compile.h"
#include "tilewright/language.h"

namespace tilewright {
namespace {

constexpr int64_t kElements = 256;

class ThreadCode : public testing::TestWithParam<int64_t> {
 protected:
  using Body = std::function<void(const Tensor& X, const Tensor& Y, const Value& i, const Value& tx)>;

  // Y(i) of each thread i of two blocks, from X(i).
  void expect_same(const Body& body) const {
    Tensor X("X", {kElements}, i32), Y("Y", {kElements}, i32);
    const int64_t threads = GetParam();
    const Program program = prim_func("thread_code", {X, Y}, [&] {
      for (auto b : Kernel(2, {.threads = threads})) {
        Value tx = get_thread_binding();
        Value i = b * threads + tx;
        body(X, Y, i, tx);
      }
    });
    const std::vector<int64_t> expected = run(program, Engine::Interpreter);
    EXPECT_NE(expected, std::vector<int64_t>(kElements, -1));
    EXPECT_EQ(run(program, Engine::Cpu), expected);
  }

 private:
  static std::vector<int64_t> run(const Program& program, Engine engine) {
    const NDArray x = NDArray::zeros({kElements}, i32), y = NDArray::zeros({kElements}, i32);
    for (int64_t i = 0; i < kElements; ++i) {
      x.set_int({i}, (i * 37 + i / 7) % 41);
      y.set_int({i}, -1);
    }
    compile(program, {.engine = engine})(x, y);
    return y.to_ints();
  }
};

TEST_P(ThreadCode, VotesInAWhileThatThreadsLeaveOneByOne) {
  expect_same([](const Tensor& X, const Tensor& Y, const Value& i, const Value&) {
    auto left = alloc_var(i32, X(i) & 15);
    auto votes = alloc_var(i32, 0);
    While(left > 0, [&] {
      Value many = ballot_sync(left > 3);
      votes += cast(popcount(many), i32);
      left = left - 1;
    });
    Y(i) = votes;
  });
}

TEST_P(ThreadCode, BlockVotesEndALoopThatThreadsSkipPartsOf) {
  expect_same([](const Tensor& X, const Tensor& Y, const Value& i, const Value& tx) {
    auto sum = alloc_var(i32, 0);
    for (auto k : serial(10)) {
      Value count = syncthreads_count(X(i) % 10 > k);
      If(count < 5, [&] { break_loop(); });
      sum += count;
      If(X(i) % 3 == 0, [&] { continue_loop(); });
      sum += shfl_xor(tx, 0);
    }
    Y(i) = sum;
  });
}

TEST_P(ThreadCode, CopiesAndFillsOfOnesOwnWhereSomeThreadsAre) {
  expect_same([](const Tensor& X, const Tensor& Y, const Value& i, const Value& tx) {
    auto own = alloc_local({4}, i32);
    fill(own, 3);
    If(X(i) > 9, [&] {
      copy(X(slice(tx % 8, tx % 8 + 4)), own);
      If(X(i) > 30, [&] { fill(own(slice(1, 3)), 50); });
    });
    If(tx >= 40, [&] { thread_return(); });
    fill(own(slice(0, 1)), 7);
    Y(i) = own(0) + own(1) * 100 + own(3) * 10000;
  });
}

TEST_P(ThreadCode, CollectivesOfHalfAWarp) {
  expect_same([](const Tensor& X, const Tensor& Y, const Value& i, const Value&) {
    Value lane = get_lane_idx();
    auto v = alloc_var(i32, X(i));
    If(lane < 16, [&] {
      Value other = shfl_xor(v, 5);
      Value large = ballot_sync(other > 20);
      v += other * 3 + cast(large, i32);
    }).Else([&] {
      Value other = shfl_xor(v, 3);
      v -= other;
      If(other > 10, [&] {
        Value alike = match_any_sync(other & 3);
        v += cast(alike, i32);
      });
    });
    Y(i) = v;
  });
}

TEST_P(ThreadCode, LoopsOfWhichEachWarpRunsItsOwnNumber) {
  expect_same([](const Tensor& X, const Tensor& Y, const Value& i, const Value&) {
    auto sum = alloc_var(i32, 0);
    for (auto k : serial(get_warp_idx() + 2)) {
      Value total = warp_reduce_sum(X(i) + k);
      sum += total;
    }
    Y(i) = sum + warp_reduce_max(X(i));
  });
}

TEST_P(ThreadCode, LocalArraysLiveAcrossBarriers) {
  const int64_t threads = GetParam();
  expect_same([&](const Tensor& X, const Tensor& Y, const Value& i, const Value& tx) {
    auto own = alloc_local({4}, i32);
    auto shared = alloc_shared({threads}, i32);
    for (auto k : serial(4)) own(k) = X(i) * (k + 1);
    shared(tx) = own(2);
    sync_threads();
    for (auto k : serial(4)) own(k) += shared((tx + k + 1) % threads);
    sync_threads();
    shared(threads - 1 - tx) = own(0) + own(3);
    sync_threads();
    Y(i) = shared(tx) + own(1) + own(X(i) & 3);
  });
}

TEST_P(ThreadCode, WhatAllThreadsDoAlikeHappensOnceBeforeSomeReturn) {
  expect_same([](const Tensor& X, const Tensor& Y, const Value& i, const Value& tx) {
    auto count = alloc_var(i32, 0);
    auto sum = alloc_shared({1}, i32);
    sum(0) = 5;
    sync_threads();
    While(count < 3, [&] { count += 1; });
    atomic_add(sum(0), count);
    sync_threads();
    for (auto k : serial(2)) Y(i) = X(i) + sum(0) + k;
    If(tx % 3 == 1, [] { thread_return(); });
    Y(i) = Y(i) * 2 + count;
  });
}

TEST_P(ThreadCode, ThreadsThatHaveReturnedDoNotVote) {
  expect_same([](const Tensor& X, const Tensor& Y, const Value& i, const Value&) {
    If(X(i) % 5 == 0, [&] {
      Y(i) = -7;
      thread_return();
    });
    Value large = ballot_sync(X(i) > 10);
    auto sum = alloc_var(i32, cast(popcount(large), i32) * 100 + cast(popcount(activemask()), i32));
    for (auto k : serial(5)) {
      If(k == X(i) % 7, [&] {
        Y(i) = sum;
        thread_return();
      });
      sum += k;
      Value any = any_sync(sum > 300);
      sum += cast(any, i32);
    }
    Y(i) = sum;
  });
}

TEST_P(ThreadCode, NestedLoopsWithTheirOwnMasks) {
  expect_same([](const Tensor& X, const Tensor& Y, const Value& i, const Value&) {
    auto sum = alloc_var(i32, 1);
    for (auto k : serial(X(i) & 3)) {
      for (auto j : serial(k + 1)) {
        Value even = ballot_sync(sum % 2 == 0);
        sum += cast(popcount(even), i32) + j;
        If(sum > 60, [&] { break_loop(); });
      }
      sum = shfl_xor(sum, 0) + 1;
      If(sum % 4 == 1, [&] { continue_loop(); });
      sum += 2;
    }
    Y(i) = sum;
  });
}

TEST_P(ThreadCode, ScansAtomicsAndTileOpsTakeTurns) {
  const int64_t threads = GetParam();
  expect_same([&](const Tensor& X, const Tensor& Y, const Value& i, const Value& tx) {
    Value lane = get_lane_idx();
    auto largest = alloc_shared({4}, i32);
    auto tile = alloc_fragment({threads}, i32);
    auto total = alloc_fragment({1}, i32);
    fill(largest, 0);
    atomic_max(largest(X(i) & 3), X(i));
    auto scan = alloc_var(i32, X(i));
    for (int64_t delta = 1; delta < 32; delta *= 2) {
      Value below = shfl_up(scan, delta);
      If(lane >= delta, [&] { scan += below; });
    }
    sync_threads();
    for (auto k : Parallel(threads)) tile(k) = X(k) + largest(k & 3);
    reduce_sum(tile, total, {.dim = 0});
    Y(i) = scan * 10 + largest(tx & 3) + total(0);
  });
}

TEST_P(ThreadCode, PointsOfALoopFindTheirThreadsLocals) {
  const int64_t threads = GetParam();
  expect_same([&](const Tensor& X, const Tensor& Y, const Value& i, const Value& tx) {
    auto sum = alloc_var(i32, tx);
    for (auto k : Parallel(threads * 2 + 5)) sum += X(k % kElements);
    auto of_third = alloc_local({3}, i32);
    for (auto q : serial(3)) of_third(q) = q * tx;
    for (auto k : Parallel(threads)) If(X(k) > 10, [&] { of_third(k % 3) += 5; });
    Y(i) = sum + of_third(0) + of_third(1) * 2 + of_third(2) * 4;
  });
}

// Jumps that all threads make end what the block does together, where other jumps leave some threads behind.
TEST_P(ThreadCode, JumpsOfAllThreadsBesideThoseOfSome) {
  expect_same([](const Tensor& X, const Tensor& Y, const Value& i, const Value& tx) {
    auto counts = alloc_shared({16}, i32);
    fill(counts, 0);
    auto own = alloc_var(i32, X(i)), turn = alloc_var(i32, 0);
    const auto count = [&](int64_t step) {
      for (auto p : Parallel(16)) counts(p) += step;
    };
    for (auto k : serial(6)) {
      If(k == 3, [] { break_loop(); });
      count(1);
      If(tx % 3 == 1, [] { continue_loop(); });
      own += k;
    }
    While(turn < 6, [&] {
      turn += 1;
      If(turn == 2, [] { continue_loop(); });
      If(turn == 5, [] { break_loop(); });
      count(10);
      If(tx % 5 == 2, [] { continue_loop(); });
      own += 100;
    });
    for (auto k : serial(4)) {
      If(k == 1, [] { break_loop(); });
      count(100);
    }
    Y(i) = own + counts(tx & 15) * 1000;
    If(tx % 4 == 3, [] { thread_return(); });
    Y(i) = Y(i) + counts(0);
  });
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadCode, testing::Values(32, 96), testing::PrintToStringParamName());

}  // namespace
}  // namespace tilewright
