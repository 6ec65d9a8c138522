// Copy and Fill as the Maps that they are. What remains of them afterwards is asynchronous.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Every immediate Copy and every Fill becomes a Map.
ir::TileProgram copies_to_maps(ir::TileProgram program);
// One of them; new variables go to the tables.
ir::Map map_of(const ir::Copy& copy, ir::ProgramTables& tables, ir::LocationId at);

}  // namespace tilewright::passes
