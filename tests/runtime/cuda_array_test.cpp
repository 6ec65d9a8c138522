// Arrays on CUDA devices, through a stand-in for the driver's library whose device memory is the process's own.
#include <gtest/gtest.h>

#include "runtime/cuda_device.h"
#include "runtime/cuda_test_driver.h"
#include "tilewright/cuda.h"
#include "tilewright/tensor.h"

namespace tilewright::runtime::cuda {
namespace {

constexpr Device kCuda0{2, 0}, kCuda1{2, 1};

NDArray counted(std::initializer_list<int64_t> shape, DType dtype) {
  const NDArray array = NDArray::empty(shape, dtype);
  std::vector<int64_t> values(static_cast<size_t>(array.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i % 7);
  array.assign_ints(values);
  return array;
}

TEST(CudaArray, GoesThereAndBack) {
  FakeDriver driver;
  for (DType dtype : {f16, i32, u4, i64}) {
    const NDArray host = counted({3, 5}, dtype);
    const NDArray there = host.to(kCuda1);
    EXPECT_EQ(there.device(), kCuda1);
    EXPECT_NE(there.data(), host.data());
    const NDArray back = there.to({1, 0});
    EXPECT_EQ(back.device(), Device{});
    EXPECT_EQ(back.to_ints(), host.to_ints()) << dtype.name();
    EXPECT_EQ(there.to(kCuda0).to({1, 0}).to_ints(), host.to_ints());
    EXPECT_EQ(there.clone().to({1, 0}).to_ints(), host.to_ints());
    EXPECT_EQ(there.to(kCuda1).data(), there.data());
  }
}

TEST(CudaArray, KeepsTheMeaningOfStrides) {
  FakeDriver driver;
  const NDArray host = counted({4, 6}, i32);
  const NDArray there = host.to(kCuda0);
  // Every second row from the last, columns reversed.
  int32_t* last = static_cast<int32_t*>(there.data()) + 3 * 6 + 5;
  const int64_t shape[] = {2, 6}, strides[] = {-12, -1};
  const NDArray view = NDArray::borrow(last, shape, i32, strides, 0, {}, kCuda0);
  const NDArray same = NDArray::borrow(static_cast<int32_t*>(host.data()) + 23, shape, i32, strides);
  EXPECT_EQ(view.to({1, 0}).to_ints(), same.to_ints());
  EXPECT_EQ(view.clone().to({1, 0}).to_ints(), same.to_ints());
  EXPECT_EQ(same.to(kCuda0).to({1, 0}).to_ints(), same.to_ints());
  EXPECT_TRUE(view.clone().is_contiguous());
}

TEST(CudaArray, IsClearedAndFreed) {
  FakeDriver driver;
  {
    const NDArray zeros = NDArray::zeros({100}, f32, kCuda0);
    EXPECT_EQ(zeros.to({1, 0}).to_floats(), std::vector<double>(100));
    const NDArray copy = zeros;
    EXPECT_EQ(driver->frees, 0);
  }
  EXPECT_EQ(driver->frees, driver->allocations);
  EXPECT_EQ(NDArray::zeros({0, 4}, f32, kCuda0).to({1, 0}).size(), 0);
}

TEST(CudaArray, RefusesWhatItCannot) {
  FakeDriver driver;
  const NDArray there = NDArray::zeros({2}, f32, kCuda0);
  expect_refusal(Code::ArrayInvalid, "the elements of an array on cuda:0 cannot be read here",
                 [&] { there.get_float({0}); });
  expect_refusal(Code::ArrayInvalid, "the elements of an array on cuda:0 cannot be read here",
                 [&] { there.to_floats(); });
  expect_refusal(Code::ArrayInvalid, "no array can be made on cuda_host", [] { NDArray::empty({1}, f32, {3, 0}); });
  expect_refusal(Code::ArrayInvalid, "no array can be copied to cuda_host", [&] { there.to({3, 0}); });
  expect_refusal(Code::CudaDeviceMissing, "there is no cuda:7: the driver has 2 devices", [] {
    NDArray::empty({1}, f32, {2, 7});
  });
  expect_refusal(Code::OutOfMemory,
                 "cannot allocate 4398046511104 bytes on cuda:0: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
                 [] { NDArray::empty({int64_t{1} << 40}, f32, kCuda0); });
}

TEST(CudaArray, BorrowsWhatIsOnADevice) {
  FakeDriver driver;
  const NDArray there = NDArray::zeros({4, 4}, f32, kCuda1);
  const int64_t shape[] = {8};
  const NDArray half = tilewright::cuda::borrow(static_cast<float*>(there.data()) + 8, shape, f32);
  EXPECT_EQ(half.device(), kCuda1);
  float on_host[8] = {};
  try {
    tilewright::cuda::borrow(on_host, shape, f32);
    FAIL();
  } catch (const LaunchError& e) {
    EXPECT_EQ(e.diagnostic().code, static_cast<uint16_t>(Code::PointerNotOnDevice));
    EXPECT_NE(e.diagnostic().message.find("belongs to no CUDA device"), std::string::npos);
  }
}

TEST(CudaArray, NeedsADriver) {
  const ScopedVariable library("TILEWRIGHT_LIBCUDA", "/nowhere/libcuda.so.1");
  EXPECT_THROW(NDArray::empty({1}, f32, kCuda0), LaunchError);
}

TEST(CudaStream, BelongsToTheThread) {
  FakeDriver driver;
  EXPECT_EQ(tilewright::cuda::stream(), nullptr);
  {
    const tilewright::cuda::StreamScope scope(reinterpret_cast<void*>(8));
    EXPECT_EQ(tilewright::cuda::stream(), reinterpret_cast<void*>(8));
  }
  EXPECT_EQ(tilewright::cuda::stream(), nullptr);
  tilewright::cuda::synchronize(1);
  EXPECT_EQ(driver.count("cuCtxSynchronize"), 1);
  driver->failing = "cuCtxSynchronize", driver->failing_result = 700;
  try {
    tilewright::cuda::synchronize();
    FAIL();
  } catch (const LaunchError& e) {
    EXPECT_EQ(e.diagnostic().code, static_cast<uint16_t>(Code::CudaCallFailed));
    EXPECT_NE(e.diagnostic().help.find("launched before this call"), std::string::npos);
  }
}

}  // namespace
}  // namespace tilewright::runtime::cuda
