// The plan of a launch, of what passes can make of it before it is planned.
#pragma once
#include "plan/decide.h"

namespace tilewright::passes {

// Of a launch of a canonical program. Launches with a gemm whose operands TMA can bring get one more warpgroup, one
// warp of which loads; others no roles, and the reason. Changes nothing: what plans are asked for is rewritten on a
// copy.
plan::Plan decide_plan(const ir::TileProgram& program, size_t launch, const target::GpuTarget& target,
                       const plan::Limits& limits);

}  // namespace tilewright::passes
