// The box that one TMA copy moves (PTX ISA 5.5, cp.async.bulk.tensor): rows of neighbours in global memory, one behind
// the other in shared memory, where chunks of 16 bytes change places by bits of their address.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "interpreter/strand.h"

namespace tilewright::simulator {

// A row of the box.
struct TmaRow {
  int64_t first = 0;           // element in global memory, from the tensor's start
  int64_t begin = 0, end = 0;  // elements of the row inside of the tensor; the rest reads 0 and is not stored
  int64_t address = 0;         // of its first byte in shared memory, before the swizzle
};

struct TmaBox {
  const interpreter::BufferCode *global = nullptr, *shared = nullptr;
  std::byte* tensor = nullptr;
  std::vector<int64_t> shape, strides, min, extent;  // of the tensor
  std::vector<int64_t> shared_min, shared_extent;
  int64_t start = 0;  // byte of shared memory, before the swizzle

  int64_t element_bytes() const { return global->type.storage_bits() / 8; }
  int64_t row_elements() const { return extent.back(); }
  int64_t row_bytes() const { return row_elements() * element_bytes(); }
  int64_t rows() const;
  int64_t pitch_bytes() const;  // from a row to the next, in shared memory
  TmaRow row(int64_t number) const;
  // Where a byte of the box stands: what the hardware does with an address, written down apart from the layouts that
  // made the code (PTX ISA 5.5.6, "Swizzling modes").
  uint64_t place(int64_t address) const;
  // Why there is no such copy; empty: there is.
  std::string fault() const;

 private:
  std::string run_fault() const;
  std::string shared_fault() const;
};

}  // namespace tilewright::simulator
