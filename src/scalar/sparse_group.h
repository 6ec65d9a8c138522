// Matrices of which half of the elements along k are kept: so many of each group of neighbours, and four bits of
// metadata a group that say which (PTX ISA 9.7.14.6.1, "Sparse matrix storage").
#pragma once
#include <cstdint>
#include <optional>

#include "tilewright/dtype.h"

namespace tilewright {

constexpr int64_t kGroupBits = 4;

struct SparseGroup {
  int64_t kept = 2, size = 4;
  // Where in the group kept element `which` stands: two bits each, or the pair of 16-bit halves of one of two words.
  int64_t position(uint64_t bits, int64_t which) const {
    return static_cast<int64_t>(size == 4 ? bits >> (2 * which) & 3 : bits >> 1 & 1);
  }
  // Whether they are bits that every engine knows: positions ascend.
  bool is_ordered(uint64_t bits) const {
    return size == 4 ? (bits & 3) < (bits >> 2 & 3) : (bits & 15) == 0b0100 || (bits & 15) == 0b1110;
  }
};

// Of the elements' type; none: there are no such matrices.
inline std::optional<SparseGroup> sparse_group(DType type) {
  if (type == f32 || type == tf32) return SparseGroup{1, 2};
  if (type == f16 || type == bf16 || type == i8 || type == u8 || type == e4m3 || type == e5m2) return SparseGroup{2, 4};
  return std::nullopt;
}

}  // namespace tilewright
