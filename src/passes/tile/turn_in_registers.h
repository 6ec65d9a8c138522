// Maps that read memory along one dimension and write it along another.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A map whose loads have their neighbours in memory along another of its dimensions than its store has brings them to a
// fragment first: both sides then make vectors of their own, and the tile turns in registers. A tile that a thread's
// registers do not hold, and memory that both may be, stay as they are.
ir::TileProgram turn_in_registers(ir::TileProgram program);

}  // namespace tilewright::passes
