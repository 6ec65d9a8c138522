// Blocks of one warp: all threads agree on what warps agree on. And checks of bounds that read a thread's own values.
#include <gtest/gtest.h>

#include "codegen/cpu_kernel.h"

namespace tilewright {
namespace {

std::vector<int64_t> run_on_numbers(const std::function<void(const Tensor&, const Tensor&)>& body) {
  Tensor X("X", {32}, i32), Y("Y", {32}, i32);
  const NDArray x = NDArray::zeros({32}, i32);
  for (int64_t i = 0; i < 32; ++i) x.set_int({i}, 31 - i);
  return expect_same(prim_func("one_warp", {X, Y}, [&] { body(X, Y); }), {x, NDArray::zeros({32}, i32)})[1].to_ints();
}

TEST(CpuOneWarp, TheWarpNumberIsZeroOutsideTheThreads) {
  const auto y = run_on_numbers([](const Tensor& X, const Tensor& Y) {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto total = alloc_shared({1}, i32);
      Value tx = get_thread_binding();
      Value warp = get_warp_idx();
      If(tx == 31, [&] { total(warp) = X(bx) + 5; });
      sync_threads();
      auto sum = alloc_var(i32, tx);
      for (auto w : serial(warp)) sum += total(w);
      Y(tx) = sum + total(warp);
    }
  });
  for (int64_t i = 0; i < 32; ++i) EXPECT_EQ(y[static_cast<size_t>(i)], 31 + 5 + i);
}

TEST(CpuOneWarp, VotesDecideForTheBlock) {
  const auto y = run_on_numbers([](const Tensor& X, const Tensor& Y) {
    for (auto bx : Kernel(1, {.threads = 32})) {
      auto total = alloc_shared({1}, i32);
      Value tx = get_thread_binding();
      fill(total, bx);
      Value votes = ballot_sync(X(tx) > 4);
      Value differ = match_all_sync(X(tx)) == 0;
      If(votes != 0 && differ, [&] { fill(total, 7); });
      for (auto i : serial(cast(popcount(votes), i32))) {
        sync_threads();
        atomic_add(total(0), i);
      }
      sync_threads();
      Y(tx) = total(0);
    }
  });
  for (int64_t value : y) EXPECT_EQ(value, 7 + 26 * 27 / 2);
}

TEST(CpuThreads, BoundsOfAnIndexOfAnEarlierRunStayInTheLoop) {
  const auto y = run_on_numbers([](const Tensor& X, const Tensor& Y) {
    for (auto bx : Kernel(1, {.threads = 32})) {
      Value tx = get_thread_binding();
      Value at = X(tx) + bx - 3;  // -3 to 28
      Value other = shfl_xor(tx, 1);
      Y(at) = other;
    }
  });
  for (int64_t i = 0; i < 32; ++i) {
    EXPECT_EQ(y[static_cast<size_t>(i)], i > 28 ? 0 : (31 - (i + 3)) ^ 1);
  }
}

}  // namespace
}  // namespace tilewright
