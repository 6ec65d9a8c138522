#include <utility>

#include "runtime/dlpack.h"
#include "runtime/plans.h"

namespace tilewright::runtime {
namespace {

TEST(NDArray, OwnedMemoryIsAlignedZeroedAndShared) {
  const NDArray a = NDArray::zeros({3, 5}, f32);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
  EXPECT_EQ(a.rank(), 2);
  EXPECT_EQ(a.size(), 15);
  EXPECT_EQ(a.stride(0), 5);
  EXPECT_EQ(a.stride(1), 1);
  EXPECT_TRUE(a.is_contiguous());
  EXPECT_EQ(a.device().name(), "cpu");
  for (int i = 0; i < 15; ++i) EXPECT_EQ(static_cast<float*>(a.data())[i], 0.0f);
  const NDArray same = a;
  EXPECT_EQ(same.data(), a.data());
  EXPECT_EQ(NDArray::zeros({}, f64).size(), 1);
  EXPECT_TRUE(NDArray().is_null());
  EXPECT_EQ(NDArray().size(), 0);
  EXPECT_NE(NDArray::empty({0, 4}, f32).data(), nullptr);
}

TEST(NDArray, Contiguity) {
  const NDArray m = NDArray::zeros({4, 6}, f32);
  const auto view = [&](std::initializer_list<int64_t> shape, std::initializer_list<int64_t> strides) {
    return NDArray::borrow(m.data(), shape, f32, strides);
  };
  EXPECT_TRUE(view({4, 6}, {6, 1}).is_contiguous());
  EXPECT_FALSE(view({6, 4}, {1, 6}).is_contiguous());
  EXPECT_FALSE(view({4, 3}, {6, 1}).is_contiguous());
  EXPECT_TRUE(view({1, 6}, {99, 1}).is_contiguous());
  EXPECT_TRUE(view({6, 1}, {1, 99}).is_contiguous());
  EXPECT_FALSE(view({4, 6}, {0, 1}).is_contiguous());
  EXPECT_TRUE(view({0, 6}, {1, 17}).is_contiguous());
  EXPECT_TRUE(view({}, {}).is_contiguous());
}

TEST(NDArray, ImpossibleArraysAreRefused) {
  expect_refusal(Code::ArrayInvalid, "an array of shape (2, -1) has a negative extent", [] {
    NDArray::zeros({2, -1}, f32);
  });
  expect_refusal(Code::ArrayInvalid, "an array of shape (1, 1, 1, 1, 1, 1, 1, 1, 1) has 9 dimensions; at most 8", [] {
    NDArray::zeros({1, 1, 1, 1, 1, 1, 1, 1, 1}, f32);
  });
  expect_refusal(Code::ArrayInvalid, "an array of shape (4294967296, 4294967296) has more elements than 64 bits count",
                 [] {
                   NDArray::zeros({int64_t{1} << 32, int64_t{1} << 32}, f32);
                 });
  expect_refusal(Code::ArrayInvalid, "an array of shape (2, 2) has strides (1)", [] {
    NDArray::borrow(nullptr, {2, 2}, f32, {1});
  });
#ifndef __SANITIZE_ADDRESS__  // which ends the process instead
  expect_refusal(Code::OutOfMemory, "no memory for an array of shape (144115188075855872), 144115188075855872 bytes",
                 [] { NDArray::empty({int64_t{1} << 57}, u8); });
#endif
}

TEST(NDArray, BorrowedMemoryIsKeptAlive) {
  auto memory = std::make_shared<std::array<float, 8>>();
  const std::weak_ptr<void> watch = memory;
  const std::vector<int64_t> shape = {4};
  {
    const NDArray a = NDArray::borrow(memory->data(), shape, f32, {}, 16, memory);
    EXPECT_EQ(a.data(), memory->data() + 4);
    const NDArray copy = a;
    memory.reset();
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

TEST(NDArray, ElementsOfEveryTypeReadBackAsWritten) {
  for (DType type :
       {i4, i8, i16, i32, i64, u4, u8, u16, u32, u64, f16, f32, tf32, f64, bf16, e4m3, e5m2, e8m0, e2m1, pointer}) {
    const NDArray a = NDArray::zeros({3, 5}, type);
    a.set_float({1, 2}, 2.0);
    a.set_int({2, 4}, 4);
    a.set_float({0, 1}, 1.0);
    EXPECT_EQ(a.get_float({1, 2}), 2.0) << type.name();
    EXPECT_EQ(a.get_int({1, 2}), 2) << type.name();
    EXPECT_EQ(a.get_float({2, 4}), 4.0) << type.name();
    EXPECT_EQ(a.get_int({0, 1}), 1) << type.name();
    if (type != e8m0) {  // has no zero
      EXPECT_EQ(a.get_float({0, 0}), 0.0) << type.name();
      EXPECT_EQ(a.get_float({2, 3}), 0.0) << type.name();
    }
  }
}

TEST(NDArray, ElementsConvertAsTheLanguageConverts) {
  const auto through = [](DType type, double value) {
    const NDArray a = NDArray::zeros({1}, type);
    a.set_float({0}, value);
    return a.get_float({0});
  };
  EXPECT_EQ(through(f16, 0.1), 0.0999755859375);
  EXPECT_EQ(through(bf16, 0.1), 0.10009765625);
  EXPECT_EQ(through(e4m3, 1e9), 448.0);
  EXPECT_EQ(through(e2m1, -100.0), -6.0);
  EXPECT_EQ(through(f16, 1e9), std::numeric_limits<double>::infinity());
  EXPECT_EQ(through(i8, -2.9), -2.0);
  EXPECT_EQ(through(i8, 1000.0), 127.0);
  EXPECT_EQ(through(boolean, 0.5), 1.0);
  const NDArray wide = NDArray::zeros({1}, i8);
  wide.set_int({0}, 257);  // integers wrap
  EXPECT_EQ(wide.get_int({0}), 1);
  const NDArray huge = NDArray::zeros({1}, u64);
  huge.set_int({0}, -1);
  EXPECT_EQ(huge.get_float({0}), 0x1p64);
}

TEST(NDArray, FourBitElementsLieTwoToAByteTheEvenOneLow) {
  std::array<uint8_t, 3> bytes = {0x21, 0x43, 0x05};
  const NDArray a = NDArray::borrow(bytes.data(), {5}, u4);
  EXPECT_EQ(a.to_ints(), (std::vector<int64_t>{1, 2, 3, 4, 5}));
  a.set_int({3}, 9);
  EXPECT_EQ(bytes[1], 0x93);
  EXPECT_EQ(a.clone().to_ints(), (std::vector<int64_t>{1, 2, 3, 9, 5}));
  EXPECT_EQ(NDArray::borrow(bytes.data() + 2, {2, 2}, u4, {-1, -3}).to_ints(), (std::vector<int64_t>{5, 2, 9, 1}));
}

TEST(NDArray, ViewsReadAndWriteThroughTheirStrides) {
  std::array<float, 24> memory;
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
  const NDArray transposed = NDArray::borrow(memory.data(), {6, 4}, f32, {1, 6});
  EXPECT_EQ(transposed.get_int({2, 3}), 20);
  const std::vector<double> values = transposed.to_floats();
  EXPECT_EQ(values[1], 6.0);
  EXPECT_EQ(values[4], 1.0);
  const NDArray backwards = NDArray::borrow(memory.data() + 23, {24}, f32, {-1});
  EXPECT_EQ(backwards.get_int({1}), 22);
  EXPECT_EQ(backwards.to_ints()[23], 0);
  const NDArray copy = transposed.clone();
  EXPECT_TRUE(copy.is_contiguous());
  EXPECT_EQ(copy.to_floats(), values);
  copy.set_int({0, 0}, 100);
  EXPECT_EQ(transposed.get_int({0, 0}), 0);
  const NDArray repeated = NDArray::borrow(memory.data() + 5, {3}, f32, {0});
  EXPECT_EQ(repeated.to_ints(), (std::vector<int64_t>{5, 5, 5}));
}

TEST(NDArray, BulkAccessCrossesChunks) {
  const NDArray a = NDArray::empty({7, 11, 101}, i32);
  std::vector<int64_t> values(static_cast<size_t>(a.size()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) - 3000;
  a.assign_ints(values);
  EXPECT_EQ(a.to_ints(), values);
  EXPECT_EQ(a.get_int({6, 10, 100}), values.back());
  EXPECT_EQ(a.get_int({1, 2, 3}), values[1 * 1111 + 2 * 101 + 3]);
  a.assign_floats(std::vector<double>(values.begin(), values.end()));
  EXPECT_EQ(a.to_ints(), values);
  expect_refusal(Code::ArrayInvalid, "2 values for an array of shape (3)", [] {
    NDArray::zeros({3}, f32).assign_floats(std::vector<double>{1, 2});
  });
}

TEST(NDArray, CloneKeepsTheBitsOfNaNs) {
  uint32_t bits[] = {0x7fa01234, 0xffc00001};  // one of them signalling
  const NDArray copy = NDArray::borrow(bits, {2}, f32).clone();
  EXPECT_EQ(std::memcmp(copy.data(), bits, sizeof bits), 0);
}

TEST(NDArray, IndicesAreChecked) {
  const NDArray a = NDArray::zeros({3, 5}, f32);
  expect_refusal(Code::ArrayInvalid, "no element (3, 0) in an array of shape (3, 5)", [&] { a.get_float({3, 0}); });
  expect_refusal(Code::ArrayInvalid, "no element (0, -1) in an array of shape (3, 5)", [&] { a.set_int({0, -1}, 1); });
  expect_refusal(Code::ArrayInvalid, "no element (0) in an array of shape (3, 5)", [&] { a.get_int({0}); });
  expect_refusal(Code::ArrayInvalid, "no element () in an array of shape ()", [] { NDArray().get_int({}); });
}

// A managed tensor as another library would make it; counts its deletions.
template <class Managed>
struct Foreign {
  Foreign() {
    managed.dl_tensor = {elements.data(), {1, 0}, 2, {2, 32, 1}, shape.data(), nullptr, 0};
    managed.manager_ctx = this;
    managed.deleter = [](Managed* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    if constexpr (std::is_same_v<Managed, DLManagedTensorVersioned>) managed.version = {1, 0};
  }
  std::array<float, 12> elements{};
  std::array<int64_t, 2> shape = {2, 3}, strides = {1, 4};
  Managed managed{};
  int deleted = 0;
};

template <class Managed>
void take_over_and_delete_once() {
  Foreign<Managed> foreign;
  foreign.managed.dl_tensor.byte_offset = 8;
  {
    const NDArray a = NDArray::from_dlpack(&foreign.managed);
    const NDArray copy = a;
    EXPECT_EQ(a.data(), foreign.elements.data() + 2);
    EXPECT_EQ(a.dtype(), f32);
    EXPECT_EQ(a.shape(1), 3);
    EXPECT_EQ(a.stride(0), 3);
    EXPECT_TRUE(a.is_contiguous());
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
  foreign.managed.dl_tensor.strides = foreign.strides.data();
  EXPECT_EQ(NDArray::from_dlpack(&foreign.managed).stride(1), 4);
  EXPECT_EQ(foreign.deleted, 2);
  foreign.managed.deleter = nullptr;  // allowed: nothing to do
  NDArray::from_dlpack(&foreign.managed);
}

TEST(Dlpack, TakesOverAndDeletesOnce) {
  take_over_and_delete_once<DLManagedTensor>();
  take_over_and_delete_once<DLManagedTensorVersioned>();
}

TEST(Dlpack, WhatIsRefusedStaysTheCallers) {
  Foreign<DLManagedTensorVersioned> foreign;
  const auto expect_refused = [&](const std::string& message) {
    expect_refusal(Code::DlpackInvalid, message, [&] { NDArray::from_dlpack(&foreign.managed); });
    EXPECT_EQ(foreign.deleted, 0);
  };
  foreign.managed.dl_tensor.dtype = {5, 64, 1};
  expect_refused("a DLPack tensor of type code 5, 64 bits, 1 lanes has no dtype here");
  foreign.managed.dl_tensor.dtype = {2, 32, 4};
  expect_refused("a DLPack tensor of type code 2, 32 bits, 4 lanes has no dtype here");
  foreign.managed.dl_tensor.dtype = {6, 1, 1};
  expect_refused("a DLPack tensor of type code 6, 1 bits, 1 lanes has no dtype here");
  foreign.managed.dl_tensor.dtype = {0, 4, 1};
  foreign.managed.flags = 4;
  expect_refused("a DLPack tensor of int4 is not packed two elements to a byte");
  foreign.managed.dl_tensor.dtype = {2, 32, 1};
  foreign.managed.flags = 1;
  expect_refused("a DLPack tensor is read-only, and a kernel could write to it");
  foreign.managed.flags = 0;
  foreign.managed.dl_tensor.ndim = 9;
  expect_refused("a DLPack tensor has 9 dimensions; at most 8");
  foreign.managed.dl_tensor.ndim = 2;
  foreign.managed.version = {2, 0};
  expect_refused("a tensor of DLPack 2.0; understood is 1.x");
}

TEST(Dlpack, RoundTripOfEveryType) {
  for (DType type :
       {boolean, i4, i8, i16, i32, i64, u4, u8, u16, u32, u64, f16, f32, f64, bf16, e4m3, e5m2, e8m0, e2m1}) {
    std::weak_ptr<void> watch;
    DLManagedTensor* plain;
    DLManagedTensorVersioned* versioned;
    void* data;
    {
      auto memory = std::make_shared<std::array<char, 1024>>();
      watch = memory;
      data = memory->data();
      const std::vector<int64_t> shape = {2, 0, 4}, strides = {8, 8, 2};
      const NDArray a = NDArray::borrow(data, shape, type, strides, 0, memory);
      plain = a.to_dlpack();
      versioned = a.to_dlpack_versioned();
    }
    EXPECT_FALSE(watch.expired());
    EXPECT_EQ(versioned->version.major, 1u);
    {
      const NDArray back = NDArray::from_dlpack(plain), again = NDArray::from_dlpack(versioned);
      for (const NDArray& array : {back, again}) {
        EXPECT_EQ(array.dtype(), type);
        EXPECT_EQ(array.data(), data);
        EXPECT_EQ(std::vector<int64_t>(array.shape().begin(), array.shape().end()), (std::vector<int64_t>{2, 0, 4}));
        EXPECT_EQ(std::vector<int64_t>(array.strides().begin(), array.strides().end()),
                  (std::vector<int64_t>{8, 8, 2}));
      }
    }
    EXPECT_TRUE(watch.expired()) << type.name();
  }
  expect_refusal(Code::DlpackInvalid, "DLPack has no type for pointer",
                 [] { NDArray::zeros({1}, pointer).to_dlpack(); });
  expect_refusal(Code::DlpackInvalid, "a null array has no DLPack tensor", [] { NDArray().to_dlpack(); });
}

}  // namespace
}  // namespace tilewright::runtime
