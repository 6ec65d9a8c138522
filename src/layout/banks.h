// Shared memory as the hardware sees it: 32 banks of 4 bytes, and the instructions that move 8 x 8 matrices.
#pragma once
#include "layout/access.h"
#include "support/function_ref.h"

namespace tilewright {

// One access of a warp. A wavefront moves up to 128 bytes, one word of each bank: 32 lanes of up to 4 bytes, 16 lanes
// of 8, 8 lanes of 16; lanes that read the same word share it. ways: the most words of one bank in a wavefront, 1 is
// conflict-free.
struct BankConflicts {
  int64_t ways = 1;
  int64_t wavefronts = 1;  // of the worst access of a warp
  int64_t ideal = 1;       // without conflicts
};

// All accesses of `fragment` to `memory` by vectors such as vector_access gives. Empty where that gives no digits.
std::optional<BankConflicts> bank_conflicts(const FragmentLayout& fragment, const MemoryLayout& memory,
                                            const VectorAccess& vector);

// ldmatrix and stmatrix (PTX 9.7.14.5.15 and .16): each 8 x 8 matrix is eight rows of 16 bytes.
struct MatrixAccess {
  int matrices = 0;  // of one instruction: 1, 2 or 4; 0: not possible
  bool transposed = false;
  int64_t ways = 1;  // bank conflicts of the eight rows of a matrix
  std::string why_not;
};
MatrixAccess matrix_access(const FragmentLayout& fragment, const MemoryLayout& memory, int64_t base_alignment = 16);

// How a shared tile is used: by vectors, or by ldmatrix or stmatrix where that is possible.
struct SharedUse {
  FragmentLayout fragment;
  bool matrix = false;
};

// Wavefronts of all uses together, by one warp for the whole tile.
int64_t shared_wavefronts(const MemoryLayout& memory, std::span<const SharedUse> uses);

// The simplest layout with the fewest wavefronts for all uses: rows, the panels of TMA and wgmma from 32 to 128 bytes,
// rows with an XOR of other chunks, padded rows, in this order. panels_only: what TMA and wgmma can read. Of these,
// those that `may` be; where none is, rows.
MemoryLayout choose_shared_layout(
    const std::vector<int64_t>& shape, int element_bits, std::span<const SharedUse> uses, bool panels_only = false,
    function_ref<bool(const MemoryLayout&)> may = [](const MemoryLayout&) { return true; });

}  // namespace tilewright
