// .npy files: round trips, NumPy's own bytes, and files that are none.
#include "driver/npy.h"

#include <gtest/gtest.h>

#include "tilewright/diagnostic.h"

namespace tilewright {
namespace {

std::string message_of(const std::string& bytes) {
  try {
    from_npy(bytes, "a.npy");
  } catch (const CompileError& e) {
    return e.diagnostic().message;
  }
  return "read";
}

std::string file(const std::string& header, const std::string& data) {
  std::string out("\x93NUMPY\1\0", 8);
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

TEST(Npy, RoundTripOfEveryDtypeThatNumPyHas) {
  for (DType t : {boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64}) {
    ASSERT_TRUE(npy_has(t));
    const NDArray a = NDArray::zeros({3, 2}, t);
    a.assign_ints(std::vector<int64_t>{1, 0, 1, 1, 0, 1});
    const std::string bytes = to_npy(a);
    EXPECT_EQ((bytes.size() - static_cast<size_t>(bytes_of(t, 6))) % 64, 0u);
    const NDArray b = from_npy(bytes, "a.npy");
    EXPECT_EQ(b.dtype(), t);
    EXPECT_EQ(std::vector<int64_t>(b.shape().begin(), b.shape().end()), (std::vector<int64_t>{3, 2}));
    EXPECT_EQ(b.to_ints(), a.to_ints());
  }
}

TEST(Npy, ShapesWithoutDimensionsAndWithoutElements) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {0}, {4, 0, 3}, {7}}) {
    const NDArray b = from_npy(to_npy(NDArray::zeros(shape, f32)), "a.npy");
    EXPECT_EQ(std::vector<int64_t>(b.shape().begin(), b.shape().end()), shape);
  }
}

TEST(Npy, StridedArraysAreWrittenRowByRow) {
  float data[] = {0, 1, 2, 3, 4, 5};
  const NDArray columns = NDArray::borrow(data, {3, 2}, f32, {1, 3});
  EXPECT_EQ(from_npy(to_npy(columns), "a.npy").to_floats(), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST(Npy, WhatNumPyWrites) {
  std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }";
  header.append(117 - header.size(), ' ').append("\n");
  const NDArray a = from_npy(file(header, std::string("\1\0\xff\xff", 4)), "a.npy");
  EXPECT_EQ(a.to_ints(), (std::vector<int64_t>{1, -1}));
}

TEST(Npy, FilesThatAreNone) {
  EXPECT_EQ(message_of(""), "a.npy: not an .npy file");
  EXPECT_EQ(message_of("PK\3\4 something else"), "a.npy: not an .npy file");
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(message_of(file(good, "12345678")), "read");
  EXPECT_EQ(message_of(file(good, "1234567")), "a.npy: 7 bytes of data do not make 2 elements of float32");
  EXPECT_EQ(message_of(file("{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", "")),
            "a.npy: no dtype for '<c8'");
  EXPECT_EQ(message_of(file("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "12345678")),
            "a.npy: no dtype for '>f4'");
  EXPECT_EQ(message_of(file("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", "12345678")),
            "a.npy: Fortran order is not read");
  EXPECT_EQ(message_of(file("{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", "12345678")),
            "a.npy: the shape is not a tuple");
  EXPECT_EQ(message_of(file("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", "12345678")),
            "a.npy: an extent is not a number");
  EXPECT_EQ(message_of(file("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "")),
            "a.npy: an impossible shape");
  EXPECT_EQ(message_of(file("{'fortran_order': False, 'shape': (2,), }", "12345678")),
            "a.npy: the header has no descr");
  EXPECT_EQ(message_of(std::string("\x93NUMPY\1\0\xff\xff{}", 12)), "a.npy: the file ends in its header");
  EXPECT_EQ(message_of(std::string("\x93NUMPY\7\0\1\1{}", 12)), "a.npy: .npy version 7 is not known");
}

TEST(Npy, TypesWithoutAName) {
  for (DType t : {bf16, e4m3, i4, tf32}) {
    EXPECT_FALSE(npy_has(t));
    EXPECT_THROW(to_npy(NDArray::zeros({2}, t)), CompileError);
  }
}

// Every prefix and every flipped byte of a file is refused or read, never worse.
TEST(Npy, DamagedFiles) {
  const std::string good = to_npy(NDArray::zeros({2, 3}, i16));
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_NE(message_of(good.substr(0, i)), "read");
    for (unsigned char c : {0x00, 0x20, 0x31, 0x80, 0xff}) {
      std::string bad = good;
      bad[i] = static_cast<char>(c);
      message_of(bad);
    }
  }
}

}  // namespace
}  // namespace tilewright
