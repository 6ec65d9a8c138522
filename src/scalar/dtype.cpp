// Names of data types: the canonical name, and every spelling users may write.
#include "tilewright/dtype.h"

#include <fmt/format.h>

namespace tilewright {
namespace {

struct NamedType {
  std::string_view name;
  DType type;
};

// The first row of a type is its canonical name.
constexpr NamedType kNames[] = {
    {"bool", boolean},
    {"boolean", boolean},
    {"int4", i4},
    {"i4", i4},
    {"s4", i4},
    {"int8", i8},
    {"i8", i8},
    {"s8", i8},
    {"char", i8},
    {"int16", i16},
    {"i16", i16},
    {"s16", i16},
    {"short", i16},
    {"int32", i32},
    {"i32", i32},
    {"s32", i32},
    {"int", i32},
    {"int64", i64},
    {"i64", i64},
    {"s64", i64},
    {"long", i64},
    {"uint4", u4},
    {"u4", u4},
    {"uint8", u8},
    {"u8", u8},
    {"uchar", u8},
    {"uint16", u16},
    {"u16", u16},
    {"ushort", u16},
    {"uint32", u32},
    {"u32", u32},
    {"uint", u32},
    {"uint64", u64},
    {"u64", u64},
    {"ulong", u64},
    {"float16", f16},
    {"f16", f16},
    {"fp16", f16},
    {"half", f16},
    {"float32", f32},
    {"f32", f32},
    {"fp32", f32},
    {"float", f32},
    {"float64", f64},
    {"f64", f64},
    {"fp64", f64},
    {"double", f64},
    {"bfloat16", bf16},
    {"bf16", bf16},
    {"tfloat32", tf32},
    {"tf32", tf32},
    {"tensorfloat32", tf32},
    {"float8_e4m3fn", e4m3},
    {"float8_e4m3", e4m3},
    {"e4m3", e4m3},
    {"e4m3fn", e4m3},
    {"fp8", e4m3},
    {"e4m3_float8", e4m3},
    {"float8_e5m2", e5m2},
    {"e5m2", e5m2},
    {"e5m2_float8", e5m2},
    {"float8_e3m4", e3m4},
    {"e3m4", e3m4},
    {"float8_e4m3b11fnuz", e4m3b11fnuz},
    {"e4m3b11fnuz", e4m3b11fnuz},
    {"float8_e4m3fnuz", e4m3fnuz},
    {"e4m3fnuz", e4m3fnuz},
    {"float8_e5m2fnuz", e5m2fnuz},
    {"e5m2fnuz", e5m2fnuz},
    {"float6_e2m3fn", e2m3},
    {"e2m3", e2m3},
    {"float6_e3m2fn", e3m2},
    {"e3m2", e3m2},
    {"float8_e8m0fnu", e8m0},
    {"float8_e8m0", e8m0},
    {"e8m0", e8m0},
    {"ue8m0", e8m0},
    {"e8m0fnu", e8m0},
    {"float4_e2m1fn", e2m1},
    {"float4_e2m1", e2m1},
    {"e2m1", e2m1},
    {"fp4", e2m1},
    {"e2m1fn", e2m1},
    {"pointer", pointer},
    {"handle", pointer},
};

}  // namespace

std::string DType::name() const {
  for (const NamedType& row : kNames)
    if (row.type == *this) return std::string(row.name);
  return fmt::format("dtype(kind {}, {} bits)", static_cast<int>(kind), static_cast<int>(bits));
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const NamedType& row : kNames)
    if (row.name == name) return row.type;
  return std::nullopt;
}

}  // namespace tilewright
