// A tile in shared memory as wgmma reads it. Where its bytes stand is written down from the PTX ISA (9.7.15.5.1.2,
// "Strides", "Swizzling modes"), apart from what makes the descriptors.
#pragma once
#include <string>
#include <vector>

#include "interpreter/code.h"

namespace tilewright::simulator {

struct MatrixOperand {
  const interpreter::BufferCode* buffer = nullptr;
  DType type;
  int64_t rows = 0, k = 0;  // of m or n; of k
  bool transposed = false;  // k is the slower of the tile's last two dimensions
  std::vector<int64_t> min, extent;
  int64_t base = 0;  // byte of shared memory where the buffer begins

  // Why no descriptor says where the tile is; empty: one does, and place() knows it.
  std::string fault();
  // The byte of shared memory where the 16 bytes with this element begin; the element is their first.
  uint64_t place(int64_t row, int64_t column) const;

 private:
  int64_t offset(int64_t row, int64_t column) const;  // by the buffer's layout, in bytes, before the swizzle
  int64_t walk(int64_t contiguous_bytes, int64_t other) const;

  int64_t start_ = 0, width_ = 16;             // of the first byte; of a row of a panel
  int64_t group_bytes_ = 0, panel_bytes_ = 0;  // from eight rows to the next; from one panel to the next
};

}  // namespace tilewright::simulator
