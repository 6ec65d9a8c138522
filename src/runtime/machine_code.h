// What a kernel's machine code says that its compiler does not.
#pragma once
#include <string_view>

namespace tilewright::runtime {

// Whether machine code for sm_90 and above takes the answer of a comparison from an instruction that clamps
// (VIMNMX.RELU with a predicate): ptxas 13.0 makes it of max(0, min(a, b)) == a, and its answer is then that of a <= b
// for either of the two. An instruction is 16 bytes: the operation in bits 0 to 8, the predicates in 81 to 86 (all
// ones: none), .RELU in 76, as nvdisasm 13.0 shows them. False for what is no ELF file of 64 bits.
bool merges_clamps(std::string_view cubin);

}  // namespace tilewright::runtime
