// Which text converts a value from one data type to another. The meaning is in convert.text.h.
#pragma once
#include <cstdint>
#include <set>
#include <string>

#include "tilewright/dtype.h"

namespace tilewright {

enum class Rounding : uint8_t {
  Nearest,     // to nearest, ties to even (float8_e8m0: up); float to integer truncates
  TowardZero,  // to float16, bfloat16, tfloat32 and float8_e8m0
  Stochastic,  // to float16, bfloat16, float8_e4m3fn, float8_e5m2 and float4_e2m1, with random bits
};

bool can_round(DType to, Rounding rounding);

// The C++ expression that converts `value`, an expression of c_type(from), to c_type(to); the pieces it calls are added
// to `pieces`. `random` is a uint32_t expression, read by Rounding::Stochastic only. Sources other than float32 round
// to odd on the way to a narrow float, so that the result is rounded once.
std::string conversion(DType from, DType to, Rounding rounding, const std::string& value, const std::string& random,
                       std::set<std::string>& pieces);

// The C++ type that holds `type` in memory: "float", "uint16_t" for f16 and bf16, "uint8_t" for fp8, packed and bool.
std::string storage_type(DType type);

// The expressions that read and write a value's bits, which have the unsigned C type of storage_bits() (4-bit types:
// the low four bits of a uint8_t). For types whose bits are the C value itself, the expression unchanged.
std::string load_text(DType type, const std::string& bits, std::set<std::string>& pieces);
std::string store_text(DType type, const std::string& value, std::set<std::string>& pieces);
// The same for a value that is one of the type's, where store_text takes any float and rounds it.
std::string keep_text(DType type, const std::string& value, std::set<std::string>& pieces);

}  // namespace tilewright
