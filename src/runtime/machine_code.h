// What a kernel's machine code says that its compiler does not.
#pragma once
#include <string_view>

namespace tilewright::runtime {

// Instructions of sm_90 and above that ptxas 13.0 gets wrong, as nvdisasm 13.0 shows them (16 bytes each, the operation
// in bits 0 to 8). All false for what is no ELF file of 64 bits.
struct DoubtfulCode {
  // VIMNMX.RELU with a predicate, which ptxas makes of max(0, min(a, b)) == a: the answer is that of a <= b, whichever
  // of the two was asked for. Predicates are in bits 81 to 86 (all ones: none), .RELU in 76.
  bool merged_clamp = false;
  // VIMNMX3, signed: of min(min(a, -b), c) it forgets the sign. Right where nothing is negated.
  bool triple = false;
  // BPT: the device compiler puts it where what a text says is undefined, too, such as an atomic on a thread's own
  // memory.
  bool traps = false;
};
DoubtfulCode doubtful_code(std::string_view cubin);

}  // namespace tilewright::runtime
