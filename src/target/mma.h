// The matrix instructions of warps: mma.sync.aligned.row.col of PTX ISA 9.7.14.5, c (m x n) += a (m x k) * b (k x n),
// and mma.sp of 9.7.14.6, where each lane has half of the elements of a and a word of metadata.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "tilewright/dtype.h"

namespace tilewright::target {

struct MmaInstruction {
  std::string_view name;  // of the instruction, after "mma.sync.aligned."
  int arch = 80;          // the first that has it
  int64_t m = 16, n = 8, k = 16;
  DType a, b, c;
  bool sparse = false;

  int64_t a_k() const { return sparse ? k / 2 : k; }  // elements of a row of a that there are
  // Registers of one thread: words of 32 bits, or doubles.
  int64_t a_words() const { return m * a_k() * a.bits / 32 / (a == f64 ? 64 : 32); }
  int64_t b_words() const { return n * k * b.bits / 32 / (b == f64 ? 64 : 32); }
  int64_t c_registers() const { return m * n / 32; }  // elements
};

std::span<const MmaInstruction> mma_instructions();
const MmaInstruction* mma_named(std::string_view name);
// Rows of a tile of c: one instruction's, or of two that have eight.
constexpr int64_t kMmaRows = 16;

// The instruction for operands of these types, accumulating in `c`; null: there is none. Of several, the longest along
// k that a depth is a multiple of.
const MmaInstruction* mma_for(DType a, DType b, DType c, int arch, bool sparse = false, int64_t depth = 0);

// The word of metadata of a lane, in two halves of 16 bits (PTX ISA 9.7.14.6.2, the figures of m16n8k16 with tf32,
// m16n8k32 with f16 and m16n8k64; sparsity selector 0): a half is four groups of a row that stand side by side.
struct MetadataHalf {
  int64_t row;      // of 16
  int64_t quarter;  // which four groups of the instruction's row: of 2 where elements have 16 bits or more, else of 4
};
MetadataHalf metadata_half(int64_t element_bits, int64_t lane, int64_t half);

}  // namespace tilewright::target
