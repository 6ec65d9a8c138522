// The stand-in driver for the time of a test.
#pragma once
#include <gtest/gtest.h>

#include "fake_cuda/fake_cuda.h"
#include "runtime/plans.h"

namespace tilewright::runtime::cuda {

class FakeDriver {
 public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  fake_cuda::State* operator->() { return &state(); }
  int count(const std::string& call) const;

 private:
  static fake_cuda::State& state();
  ScopedVariable library_;
};

}  // namespace tilewright::runtime::cuda
