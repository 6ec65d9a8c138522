// Calls that are checked: all engines run them, and what differs is said.
#include "tilewright/check.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <set>

#include "interpreter/run.h"
#include "support/warning.h"
#include "tilewright/language.h"

namespace tilewright {
namespace {

Program shifted(int64_t by) {
  Tensor A("A", {64}, f32), B("B", {64}, f32);
  return prim_func("shifted", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      (void)bx;
      auto s = alloc_shared({64}, f32, "s");
      copy(A, s);
      for (auto i : Parallel(64)) B(i) = s((i + by) % 64) * 2.0f;
    }
  });
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.diagnostic().code_text() + ": " + e.diagnostic().message;
  }
  return "no error";
}

TEST(Check, RunsTheProgramAndLeavesItsResult) {
  const NDArray a = interpreter::range_array({64}, f32), b = NDArray::zeros({64}, f32);
  const Executable kernel = compile_checked(shifted(3), {.engine = Engine::Cpu});
  kernel(a, b);
  EXPECT_EQ(kernel.engine(), "cpu");
  EXPECT_EQ(b.get_float({1}), 8);
  EXPECT_EQ(a.get_float({1}), 1);
}

// In place: the copies that the other engines work on are those of before the call.
TEST(Check, OneArrayInTwoPlacesIsOne) {
  Tensor A("A", {64}, i32), B("B", {64}, i32);
  const Program twice = prim_func("twice", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      (void)bx;
      for (auto i : Parallel(64)) B(i) = A(i) + 1;
    }
  });
  const NDArray a = NDArray::zeros({64}, i32);
  compile_checked(twice, {.engine = Engine::Interpreter})(a, a);
  EXPECT_EQ(a.get_int({5}), 1);
}

TEST(Check, TheInterpreterLooksFirst) {
  Tensor A("A", {64}, i32), B("B", {64}, i32);
  const Program p = prim_func("scatter", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      (void)bx;
      auto s = alloc_shared({8}, i32, "s");
      fill(s, 0);
      for (auto i : serial(64)) s(A(i)) = 1;
      copy(s, B(slice(0, 8)));
    }
  });
  const NDArray a = interpreter::range_array({64}, i32), b = NDArray::zeros({64}, i32);
  const Executable kernel = compile_checked(p, {.engine = Engine::Cpu});
  EXPECT_EQ(message_of([&] { kernel(a, b); }),
            "TW6001: index (8) is outside 's' of shape (8), in block (0), thread (0)");
  EXPECT_EQ(b.get_int({0}), 0);
}

// A sum of terms that cancel has no digits left to agree on: the order decides.
TEST(Check, EnginesThatDiffer) {
  Tensor A("A", {1, 64}, f32), B("B", {1}, f32);
  const Program sum = prim_func("sum", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      (void)bx;
      auto row = alloc_fragment({1, 64}, f32);
      auto total = alloc_fragment({1}, f32);
      copy(A, row);
      reduce_sum(row, total);
      copy(total, B);
    }
  });
  const NDArray a = NDArray::zeros({1, 64}, f32), b = NDArray::zeros({1}, f32);
  for (int64_t i = 0; i < 64; ++i) a.set_float({0, i}, (i % 2 ? -1.0 : 1.0) * (i < 32 ? 1e30 : 1) + (i % 3));
  const std::string message = message_of([&] { compile_checked(sum, {.engine = Engine::Interpreter})(a, b); });
  EXPECT_EQ(message.substr(0, 46), "TW4020: the engines differ: B[0] is 32 on the ") << message;
}

// A sum between two halves is one or the other, by the order in which it was made: what comes of it may differ by as
// much.
TEST(Check, SumsThatAreRoundedOnChip) {
  Tensor A("A", {1, 64}, f32), B("B", {1}, f32);
  const auto sum = [&](DType type) {
    return prim_func("sum", {A, B}, [&] {
      for (auto bx : Kernel(1, {.threads = 32})) {
        (void)bx;
        auto row = alloc_fragment({1, 64}, f32);
        auto total = alloc_fragment({1}, f32);
        auto rounded = alloc_fragment({1}, type);
        copy(A, row);
        reduce_sum(row, total);
        copy(total, rounded);
        copy(rounded, B);
      }
    });
  };
  const NDArray a = NDArray::zeros({1, 64}, f32), b = NDArray::zeros({1}, f32), c = NDArray::zeros({1}, f32);
  for (int64_t i = 0; i < 64; ++i) a.set_float({0, i}, i == 0 ? 1 : i == 1 ? 0x1p-11 : 0x1p-25);
  compile(sum(f16), {.engine = Engine::Interpreter})(a, b);
  compile(sum(f16), {.engine = Engine::Simulator})(a, c);
  EXPECT_EQ(std::set({b.get_float({0}), c.get_float({0})}), std::set({1.0, 1.0 + 0x1p-10}));
  EXPECT_EQ(message_of([&] { compile_checked(sum(f16), {.engine = Engine::Interpreter})(a, b); }), "no error");
  a.set_float({0, 1}, 0x1p-9);
  a.set_float({0, 2}, -1e30), a.set_float({0, 3}, 1e30);  // what is left of 1 depends on the order
  const std::string message = message_of([&] { compile_checked(sum(f32), {.engine = Engine::Interpreter})(a, b); });
  EXPECT_EQ(message.substr(0, 27), "TW4020: the engines differ:") << message;
}

// Digits that a sum does not have are none of the type it is stored as.
TEST(Check, SumsThatAreStoredAsAFinerType) {
  Tensor A("A", {1, 64}, f32), B("B", {1}, f64);
  const Program sum = prim_func("sum", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 32})) {
      (void)bx;
      auto row = alloc_fragment({1, 64}, f32);
      auto total = alloc_fragment({1}, f32);
      copy(A, row);
      reduce_sum(row, total);
      copy(total, B);
    }
  });
  const NDArray a = NDArray::zeros({1, 64}, f32), b = NDArray::zeros({1}, f64), c = NDArray::zeros({1}, f64);
  for (int64_t i = 0; i < 64; ++i) a.set_float({0, i}, i == 0 ? 1 : 0x1p-25);
  compile(sum, {.engine = Engine::Interpreter})(a, b);
  compile(sum, {.engine = Engine::Simulator})(a, c);
  EXPECT_NE(b.get_float({0}), c.get_float({0}));
  EXPECT_EQ(message_of([&] { compile_checked(sum, {.engine = Engine::Interpreter})(a, b); }), "no error");
}

TEST(Check, ElementsThatNobodyWrote) {
  Tensor A("A", {64}, f32), B("B", {64}, f32);
  const Program half = prim_func("half", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      (void)bx;
      for (auto i : Parallel(32)) B(i * 2) = A(i);
    }
  });
  std::string warned;
  const WarningSink before =
      replace_warning_sink([&](const Diagnostic& d) { warned = d.code_text() + ": " + d.message; });
  compile_checked(half, {.engine = Engine::Interpreter})(NDArray::zeros({64}, f32), NDArray::zeros({64}, f32));
  replace_warning_sink(before);
  EXPECT_EQ(warned, "TW6017: half: 32 of the 64 elements of 'B' are not written, B[1] is the first");
}

// Sixteen bits are few: whatever number stands there was written.
TEST(Check, WhatWasWrittenIsNoHole) {
  std::vector<uint16_t> numbers;
  for (uint32_t bits = 0; bits < 65536; ++bits)
    if ((bits & 0x7c00) != 0x7c00 || (bits & 0x3ff) == 0) numbers.push_back(static_cast<uint16_t>(bits));
  const auto count = static_cast<int64_t>(numbers.size());
  Tensor A("A", {count}, f16), B("B", {count}, f16);
  const Program all = prim_func("all", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      (void)bx;
      for (auto i : Parallel(count)) B(i) = A(i);
    }
  });
  const NDArray a = NDArray::zeros({count}, f16);
  std::memcpy(a.data(), numbers.data(), numbers.size() * 2);
  std::string warned;
  const WarningSink before = replace_warning_sink([&](const Diagnostic& d) { warned += d.message; });
  compile_checked(all, {.engine = Engine::Interpreter})(a, NDArray::zeros({count}, f16));
  replace_warning_sink(before);
  EXPECT_EQ(warned, "");
}

TEST(Check, AddressesAreNotFollowed) {
  Tensor P("P", {1}, pointer), B("B", {64}, f32);
  const Program p = prim_func("through", {P, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      (void)bx;
      auto A = make_tensor(P(0), {64}, f32);
      for (auto i : Parallel(64)) A(i) = 1.0f;
      for (auto i : Parallel(64)) B(i) = 2.0f;
    }
  });
  const NDArray a = NDArray::zeros({64}, f32), b = NDArray::zeros({64}, f32), addresses = NDArray::zeros({1}, pointer);
  *static_cast<void**>(addresses.data()) = a.data();
  std::string warned;
  const WarningSink before =
      replace_warning_sink([&](const Diagnostic& d) { warned = d.code_text() + ": " + d.message; });
  compile_checked(p, {.engine = Engine::Interpreter})(addresses, b);
  replace_warning_sink(before);
  EXPECT_EQ(warned, "TW4021: through: not checked: it follows addresses, and what they lead to is not copied");
  EXPECT_EQ(a.get_float({9}), 1);
}

TEST(Check, TheEnvironmentAsksForIt) {
  setenv("TILEWRIGHT_CHECK", "1", 1);
  Tensor A("A", {64}, i32), B("B", {8}, i32);
  const Program p = prim_func("scatter", {A, B}, [&] {
    for (auto bx : Kernel(1, {.threads = 64})) {
      (void)bx;
      auto s = alloc_shared({8}, i32, "s");
      fill(s, 0);
      for (auto i : serial(64)) s(A(i)) = 1;
      copy(s, B);
    }
  });
  const NDArray a = interpreter::range_array({64}, i32), b = NDArray::zeros({8}, i32);
  const std::string found = message_of([&] { compile(p, {.engine = Engine::Cpu})(a, b); });
  setenv("TILEWRIGHT_CHECK", "yes", 1);
  const std::string misspelt = message_of([&] { compile(p, {.engine = Engine::Cpu}); });
  unsetenv("TILEWRIGHT_CHECK");
  EXPECT_EQ(found, "TW6001: index (8) is outside 's' of shape (8), in block (0), thread (0)");
  EXPECT_EQ(misspelt, "TW5506: TILEWRIGHT_CHECK is 'yes'");
}

}  // namespace
}  // namespace tilewright
