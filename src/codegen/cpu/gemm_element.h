// Reading and writing single elements of gemm operands, as text.
#pragma once
#include <set>
#include <string>

#include "tilewright/dtype.h"

namespace tilewright {

// A short name for names of functions: "f16", "e4m3", "u4".
std::string type_code(DType type);

// The two types have the same bits for the same value in a gemm's arithmetic.
bool same_bits(DType stored, DType element);

// base[offset] of the stored type, converted to `element` (f32, f64, bf16, i16, u32, u64).
std::string load_element(DType stored, DType element, const std::string& base, const std::string& offset,
                         std::set<std::string>& pieces);

// The statement base[offset] = value of type `type`, where value has the accumulator's type.
std::string store_element(DType type, DType stored, const std::string& base, const std::string& offset,
                          const std::string& value, std::set<std::string>& pieces);

}  // namespace tilewright
