// Quotients of what is not negative, as unsigned ones of 32 bits.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Quotients round down in the language and to zero in CUDA C++, and a GPU divides by multiplying: for a dividend that
// may be negative it takes twice the instructions, for one of 64 bits many times as many. Where ranges say that
// dividend and divisor are within 32 bits without a sign, and the divisor is at least 1, they are divided so. Powers of
// two stay: they are shifts and masks.
void plain_quotients(ir::ThreadProgram& program);

}  // namespace tilewright::passes
