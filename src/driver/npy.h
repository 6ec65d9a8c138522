// NumPy's .npy files, versions 1 to 3: arrays in C order of the dtypes that NumPy has. bfloat16, float8 and 4-bit
// elements have no NumPy name and are not read or written.
#pragma once
#include <string>
#include <string_view>

#include "tilewright/tensor.h"

namespace tilewright {

bool npy_has(DType type);
// The bytes of the file. CompileError NpyFile if the dtype has no name there.
std::string to_npy(const NDArray& array);
// CompileError NpyFile, at `name`, if the bytes are not such a file.
NDArray from_npy(std::string_view bytes, const std::string& name);

}  // namespace tilewright
