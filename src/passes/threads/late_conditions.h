// Conditions that all turns of a loop have in common.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Conditions of a thread's number alone that the points behind a product ask for, the mask of a chunk, are the same in
// all turns of the loop around. The device's compiler computes so many before the loop, or before the product, keeps
// them as bits of registers and takes them out again one by one. They ask for a copy of the number that the wait for
// the product gives out.
void late_conditions(ir::ThreadProgram& program);

}  // namespace tilewright::passes
