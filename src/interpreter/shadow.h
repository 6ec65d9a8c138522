// Shadow bits of memory on chip: which elements were written. A byte of shadow for a byte of memory, bit 0 for its low
// half and bit 1 for the other.
#pragma once
#include <cstdint>

#include "tilewright/dtype.h"

namespace tilewright::interpreter {

// The first of the elements [first, first + n) that was not written; -1: all were.
int64_t first_unwritten(const uint8_t* written, DType type, int64_t first, int64_t n);
void mark_written(uint8_t* written, DType type, int64_t first, int64_t n);
void forget_written(uint8_t* written, DType type, int64_t element);
// Elements [to_first, to_first + n) are written where those from `from_first` on are.
void copy_written(uint8_t* to, int64_t to_first, const uint8_t* from, int64_t from_first, DType type, int64_t n);

}  // namespace tilewright::interpreter
