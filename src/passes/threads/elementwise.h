// Copy and Fill as the Maps that they are. What remains of them afterwards is asynchronous.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Every immediate Copy and every Fill becomes a Map.
ir::TileProgram copies_to_maps(ir::TileProgram program);

}  // namespace tilewright::passes
