// Data types of tensors and scalars. A DType is two bytes, passed by value, and compares by value.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright {

// How the bits of a value are read. Kinds below Float are integers.
enum class Kind : uint8_t {
  Bool,               // one byte in memory, 0 or 1
  Int,                // two's complement: 4, 8, 16, 32, 64 bits
  UInt,               // 4, 8, 16, 32, 64 bits
  Float,              // IEEE 754 binary16, binary32, binary64
  BFloat,             // bfloat16: the upper half of a binary32
  TFloat,             // tfloat32: stored as binary32; a gemm reads 10 bits of its mantissa
  Float8E4M3FN,       // 1-4-3, finite only: no infinity, NaN is 0x7f and 0xff, largest 448
  Float8E5M2,         // 1-5-2, with infinity and NaN, largest finite 57344
  Float8E3M4,         // 1-3-4, with infinity and NaN, largest finite 15.5
  Float8E4M3B11FNUZ,  // 1-4-3 with bias 11: no infinity, one zero, NaN is 0x80, largest 30
  Float8E4M3FNUZ,     // 1-4-3 with bias 8: no infinity, one zero, NaN is 0x80, largest 240
  Float8E5M2FNUZ,     // 1-5-2 with bias 16: no infinity, one zero, NaN is 0x80, largest 57344
  Float6E2M3FN,       // 1-2-3 in the low bits of a byte, finite only, largest 7.5
  Float6E3M2FN,       // 1-3-2 in the low bits of a byte, finite only, largest 28
  Float8E8M0,         // unsigned power of two 2^(bits-127), NaN is 0xff
  Float4E2M1,         // 1-2-1, finite only, largest 6, packed two to a byte (even index in the low nibble)
  Pointer,            // a 64-bit address of an element in global memory
};

struct DType {
  Kind kind = Kind::Float;
  uint8_t bits = 32;

  constexpr bool operator==(const DType&) const = default;
  constexpr bool is_bool() const { return kind == Kind::Bool; }
  constexpr bool is_int() const { return kind == Kind::Int || kind == Kind::UInt; }
  constexpr bool is_integral() const { return is_int() || is_bool(); }
  constexpr bool is_signed() const { return kind != Kind::UInt && kind != Kind::Bool && kind != Kind::Pointer; }
  constexpr bool is_float() const { return kind >= Kind::Float && kind <= Kind::Float4E2M1; }
  // Floats that take a byte each, those of 6 bits too.
  constexpr bool is_float8() const { return kind >= Kind::Float8E4M3FN && kind <= Kind::Float8E8M0; }
  constexpr bool is_pointer() const { return kind == Kind::Pointer; }
  // Bits of one element in memory: a bool takes a byte.
  constexpr int storage_bits() const { return is_bool() ? 8 : bits; }
  constexpr bool is_packed() const { return storage_bits() < 8; }
  // The name users write: "float16", "int4", "float8_e4m3fn".
  std::string name() const;
};

// Bytes that `count` consecutive elements take; a last half-filled byte counts whole.
constexpr int64_t bytes_of(DType type, int64_t count) { return (count * type.storage_bits() + 7) / 8; }

// Accepts the names of name() and the usual aliases: "half", "float", "bfloat16", "f32", "e4m3", ... Empty if unknown.
std::optional<DType> parse_dtype(std::string_view name);

inline constexpr DType boolean{Kind::Bool, 1};
inline constexpr DType i4{Kind::Int, 4}, i8{Kind::Int, 8}, i16{Kind::Int, 16}, i32{Kind::Int, 32}, i64{Kind::Int, 64};
inline constexpr DType u4{Kind::UInt, 4}, u8{Kind::UInt, 8}, u16{Kind::UInt, 16}, u32{Kind::UInt, 32},
    u64{Kind::UInt, 64};
inline constexpr DType f16{Kind::Float, 16}, f32{Kind::Float, 32}, f64{Kind::Float, 64};
inline constexpr DType bf16{Kind::BFloat, 16}, tf32{Kind::TFloat, 32};
inline constexpr DType e4m3{Kind::Float8E4M3FN, 8}, e5m2{Kind::Float8E5M2, 8}, e8m0{Kind::Float8E8M0, 8};
inline constexpr DType e3m4{Kind::Float8E3M4, 8}, e4m3b11fnuz{Kind::Float8E4M3B11FNUZ, 8};
inline constexpr DType e4m3fnuz{Kind::Float8E4M3FNUZ, 8}, e5m2fnuz{Kind::Float8E5M2FNUZ, 8};
inline constexpr DType e2m3{Kind::Float6E2M3FN, 8}, e3m2{Kind::Float6E3M2FN, 8};
inline constexpr DType e2m1{Kind::Float4E2M1, 4};
inline constexpr DType pointer{Kind::Pointer, 64};

}  // namespace tilewright

template <>
struct std::hash<tilewright::DType> {
  size_t operator()(tilewright::DType t) const noexcept { return static_cast<size_t>(t.kind) << 8 | t.bits; }
};
