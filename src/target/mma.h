// The matrix instructions of warps: mma.sync.aligned.row.col of PTX ISA 9.7.14.5, c (m x n) += a (m x k) * b (k x n).
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

  // 32-bit registers of one thread.
  int64_t a_words() const { return m * k * a.bits / 32 / 32; }
  int64_t b_words() const { return n * k * b.bits / 32 / 32; }
  int64_t c_registers() const { return m * n / 32; }  // elements, of 32 bits
};

std::span<const MmaInstruction> mma_instructions();
const MmaInstruction* mma_named(std::string_view name);
// The instruction for operands of these types, accumulating in `c`; null: there is none.
const MmaInstruction* mma_for(DType a, DType b, DType c, int arch);

}  // namespace tilewright::target
