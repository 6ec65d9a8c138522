#include "runtime/cuda_test_driver.h"

#include <algorithm>

#include "runtime/loaded_library.h"

namespace tilewright::runtime::cuda {

fake_cuda::State& FakeDriver::state() {
  std::string problem;
  static const LoadedLibrary library = LoadedLibrary::open({TILEWRIGHT_FAKE_CUDA}, problem);
  fake_cuda::GetState* get = nullptr;
  if (!library.load("fake_cuda_state", get)) throw std::runtime_error("no stand-in driver: " + problem);
  return *get();
}

// A driver is loaded once, so a test that wants it to fail at the start must be the first of its process; others find
// it as it was.
FakeDriver::FakeDriver() : library_("TILEWRIGHT_LIBCUDA", TILEWRIGHT_FAKE_CUDA) { state() = fake_cuda::State(); }
FakeDriver::~FakeDriver() { state() = fake_cuda::State(); }

int FakeDriver::count(const std::string& call) const {
  const std::vector<std::string>& calls = state().calls;
  return static_cast<int>(std::count(calls.begin(), calls.end(), call));
}

}  // namespace tilewright::runtime::cuda
