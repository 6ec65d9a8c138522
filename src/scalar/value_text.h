// Values as printed lines and messages show them.
#pragma once
#include <cstdint>
#include <string>

#include "tilewright/dtype.h"

namespace tilewright {

// "3", "-0.5", "nan", "true": floats in the shortest digits that read back. The word holds an integer, the bits of a
// double for float64, or the bits of a float for any other float.
std::string value_text(DType type, uint64_t word);

}  // namespace tilewright
