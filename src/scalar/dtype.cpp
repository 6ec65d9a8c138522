// Names of data types: the canonical name, and every spelling users may write.
#include "scalar/dtype_rows.h"

#include <fmt/format.h>

namespace tilewright {
namespace {

constexpr DTypeRow kTypes[] = {
    {"bool", "bool", boolean, 6},
    {"int8", "i8", i8, 0},
    {"int16", "i16", i16, 0},
    {"int32", "i32", i32, 0},
    {"int64", "i64", i64, 0},
    {"uint8", "u8", u8, 1},
    {"uint16", "u16", u16, 1},
    {"uint32", "u32", u32, 1},
    {"uint64", "u64", u64, 1},
    {"int4", "i4", i4, 0},
    {"uint4", "u4", u4, 1},
    {"float16", "f16", f16, 2, 65504},
    {"float32", "f32", f32, 2, 0x1.fffffep127},
    {"float64", "f64", f64, 2, 0x1.fffffffffffffp1023},
    {"bfloat16", "bf16", bf16, 4, 0x1.fep127},
    {"float8_e4m3fn", "e4m3", e4m3, 10, 448},
    {"float8_e5m2", "e5m2", e5m2, 12, 57344},
    {"float8_e3m4", "e3m4", e3m4, 7, 15.5, true},
    {"float8_e4m3b11fnuz", "e4m3b11fnuz", e4m3b11fnuz, 9, 30, true},
    {"float8_e4m3fnuz", "e4m3fnuz", e4m3fnuz, 11, 240, true},
    {"float8_e5m2fnuz", "e5m2fnuz", e5m2fnuz, 13, 57344, true},
    {"float8_e8m0fnu", "e8m0", e8m0, 14, 0x1p127},
    {"float6_e2m3fn", "e2m3", e2m3, 15, 7.5, true},
    {"float6_e3m2fn", "e3m2", e3m2, 16, 28, true},
    {"float4_e2m1fn", "e2m1", e2m1, 17, 6},
    {"tfloat32", "tf32", tf32, -1, 0x1.fffffep127},
    {"pointer", "pointer", pointer},
};

// Other spellings.
constexpr struct {
  std::string_view name;
  DType type;
} kAliases[] = {
    {"boolean", boolean},
    {"s4", i4},
    {"s8", i8},
    {"char", i8},
    {"s16", i16},
    {"short", i16},
    {"s32", i32},
    {"int", i32},
    {"s64", i64},
    {"long", i64},
    {"uchar", u8},
    {"ushort", u16},
    {"uint", u32},
    {"ulong", u64},
    {"fp16", f16},
    {"half", f16},
    {"fp32", f32},
    {"float", f32},
    {"fp64", f64},
    {"double", f64},
    {"tensorfloat32", tf32},
    {"float8_e4m3", e4m3},
    {"e4m3fn", e4m3},
    {"fp8", e4m3},
    {"e4m3_float8", e4m3},
    {"e5m2_float8", e5m2},
    {"float8_e8m0", e8m0},
    {"ue8m0", e8m0},
    {"e8m0fnu", e8m0},
    {"float4_e2m1", e2m1},
    {"fp4", e2m1},
    {"e2m1fn", e2m1},
    {"handle", pointer},
};

}  // namespace

std::span<const DTypeRow> dtype_rows() { return kTypes; }

const DTypeRow* dtype_row(DType type) {
  for (const DTypeRow& row : kTypes)
    if (row.type == type) return &row;
  return nullptr;
}

std::optional<DType> dtype_of_dlpack(uint8_t code, uint8_t bits, uint16_t lanes) {
  for (const DTypeRow& row : kTypes)
    if (row.dlpack_code == code && row.type.storage_bits() == bits && lanes == 1) return row.type;
  return std::nullopt;
}

std::string DType::name() const {
  if (const DTypeRow* row = dtype_row(*this)) return row->name;
  return fmt::format("dtype(kind {}, {} bits)", static_cast<int>(kind), static_cast<int>(bits));
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeRow& row : kTypes)
    if (name == row.name || name == row.code) return row.type;
  for (const auto& row : kAliases)
    if (row.name == name) return row.type;
  return std::nullopt;
}

}  // namespace tilewright
