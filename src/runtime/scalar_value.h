// Scalar arguments in 64 bits, as kernel_abi.text.h describes them.
#pragma once
#include <cstdint>

#include "tilewright/dtype.h"
#include "tilewright/executable.h"

namespace tilewright::runtime {

// Whether the integer, given in 64 bits (unsigned for uint64), is a value of the type.
bool integer_fits(DType type, int64_t value);

enum class ScalarFit : uint8_t { Fits, WrongKind, OutOfRange };

// Integers and bool take integers in range; floating types take integers and numbers, rounded as the language rounds.
ScalarFit scalar_value(DType type, const Argument& argument, int64_t& value);

}  // namespace tilewright::runtime
