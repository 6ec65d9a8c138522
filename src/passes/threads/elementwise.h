// Copy and Fill as the Maps, or the loops of a thread, that they are. What remains of them afterwards is asynchronous.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Every immediate Copy and every Fill becomes a Map.
ir::TileProgram copies_to_maps(ir::TileProgram program);
ir::Body copies_to_maps(const ir::Body& body, ir::ProgramTables& tables);
// The loops of an immediate Copy or a Fill that every thread does for itself, since memory of its own takes part; none:
// it is something else.
std::optional<ir::Stmt> own_loops(const ir::Stmt& s, ir::ProgramTables& tables);
// One of them; new variables go to the tables.
ir::Map map_of(const ir::Copy& copy, ir::ProgramTables& tables, ir::LocationId at);

}  // namespace tilewright::passes
