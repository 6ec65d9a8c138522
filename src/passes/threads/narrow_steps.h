// A pipelined loop that takes half of each step at a time, so that what a step holds on chip is half as much.
#pragma once
#include <optional>

#include "ir/program.h"

namespace tilewright::passes {

// The launch with every step of the loop, a statement of its body, in two; none: a step is more than the sum of its
// halves. A step is cut along the dimension in which the loop walks over tensors: every tile that comes from there, and
// all that is made of it, has half the extent, gemms that add over it take half at a time. Tiles of steps get new rows
// in the table. Needs canonical tile programs; leaves them so.
std::optional<ir::Launch> halve_steps(ir::TileProgram& program, const ir::Launch& launch, size_t loop, int64_t fewest);

}  // namespace tilewright::passes
