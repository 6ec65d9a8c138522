// Indices by fewer instructions: what a thread computes before its first load, a short kernel waits for.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Digits of one number that stand side by side in a sum are one digit: 16 * (t / 128) + 4 * (t % 128 / 32) is
// 4 * (t / 32). Integers of 64 bits that have room in 32 are compared so.
void short_indices(ir::ThreadProgram& program);

}  // namespace tilewright::passes
