// The data types, each once: its name, and how tensors of other libraries have it.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "tilewright/dtype.h"

namespace tilewright {

struct DTypeRow {
  const char* name;
  const char* code;  // in names of functions: load_e8m0
  DType type;
  int dlpack_code = -1;   // DLDataTypeCode; -1: no tensor has it
  double largest = 0;     // finite value of a float
  bool as_bytes = false;  // few libraries know it: tensors of bytes stand for its codes
};

// Those of tensors first.
std::span<const DTypeRow> dtype_rows();
const DTypeRow* dtype_row(DType type);  // null: there is no such type
// None: DLPack has such elements, or may have, and we have not.
std::optional<DType> dtype_of_dlpack(uint8_t code, uint8_t bits, uint16_t lanes);

}  // namespace tilewright
