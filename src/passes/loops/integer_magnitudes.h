// The largest magnitude of 16-bit floats is the largest of integers: a vector holds twice as many, and no element is
// converted.
//
// Needs: a LoopProgram of lower_to_loops().
// Leaves: the same results. Lanes of an absmax (passes/lower/reduce.cpp) whose elements come from a global tensor of
//   float16 or bfloat16 become lanes of int16: the bits without the sign, plus what makes infinity 0x7fff. NaN wraps
//   below zero, and so below every number.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

ir::LoopProgram integer_magnitudes(ir::LoopProgram program);

}  // namespace tilewright::passes
