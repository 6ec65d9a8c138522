#include <gtest/gtest.h>

#include "scalar/dtype_rows.h"
#include "tilewright/dtype.h"

namespace tilewright {
namespace {

constexpr DType kAllTypes[] = {boolean, i4,   i8,      i16,  i32,         i64,      u4,       u8,   u16,
                               u32,     u64,  f16,     f32,  f64,         bf16,     tf32,     e4m3, e5m2,
                               e8m0,    e2m1, pointer, e3m4, e4m3b11fnuz, e4m3fnuz, e5m2fnuz, e2m3, e3m2};

TEST(ScalarDtype, NamesParseBackAndAreDistinct) {
  std::set<std::string> names;
  for (DType type : kAllTypes) {
    EXPECT_EQ(parse_dtype(type.name()), type) << type.name();
    EXPECT_TRUE(names.insert(type.name()).second) << type.name();
  }
  EXPECT_EQ(f16.name(), "float16");
  EXPECT_EQ(i4.name(), "int4");
  EXPECT_EQ(e4m3.name(), "float8_e4m3fn");
  EXPECT_EQ(pointer.name(), "pointer");
}

TEST(ScalarDtype, AliasesAndUnknownNames) {
  EXPECT_EQ(parse_dtype("half"), f16);
  EXPECT_EQ(parse_dtype("float"), f32);
  EXPECT_EQ(parse_dtype("bf16"), bf16);
  EXPECT_EQ(parse_dtype("e4m3"), e4m3);
  EXPECT_EQ(parse_dtype("e8m0"), e8m0);
  EXPECT_EQ(parse_dtype("e4m3fnuz"), e4m3fnuz);
  EXPECT_EQ(parse_dtype("float31"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
  EXPECT_EQ(parse_dtype("Float32"), std::nullopt);
}

TEST(ScalarDtype, EachTypeIsOneRowThatDlpackComesBackTo) {
  EXPECT_EQ(dtype_rows().size(), std::size(kAllTypes));
  for (const DTypeRow& row : dtype_rows()) {
    EXPECT_EQ(dtype_row(row.type), &row) << row.name;
    EXPECT_EQ(parse_dtype(row.name), row.type);
    EXPECT_EQ(parse_dtype(row.code), row.type);
    if (row.dlpack_code < 0) continue;
    const auto code = static_cast<uint8_t>(row.dlpack_code), bits = static_cast<uint8_t>(row.type.storage_bits());
    EXPECT_EQ(dtype_of_dlpack(code, bits, 1), row.type) << row.name;
    EXPECT_EQ(dtype_of_dlpack(code, bits, 3), std::nullopt) << row.name;
  }
  EXPECT_EQ(dtype_of_dlpack(0, 24, 1), std::nullopt);
  EXPECT_EQ(dtype_of_dlpack(2, 128, 1), std::nullopt);
}

TEST(ScalarDtype, BytesRoundUpForPackedTypes) {
  EXPECT_EQ(bytes_of(i4, 3), 2);
  EXPECT_EQ(bytes_of(e2m1, 4), 2);
  EXPECT_EQ(bytes_of(boolean, 3), 3);
  EXPECT_EQ(bytes_of(f64, 3), 24);
}

}  // namespace
}  // namespace tilewright
