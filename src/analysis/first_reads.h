// Tiles that are read though nothing was ever written to them.
#pragma once
#include <map>
#include <vector>

#include "ir/program.h"

namespace tilewright::analysis {

// How many statements of a body may write each tile, as the storage that it is. Text of the user's may do more with
// what it is given than it says.
using Writes = std::map<ir::BufferId, int>;
Writes writes_in(const ir::Body& body, const ir::ProgramTables& program);

// A finding for each tile whose first read surely comes before any write that could be there. What may have been
// written on some path, by other threads or in an earlier turn of a loop, is no finding, nor is anything in a program
// that gives nothing to a caller.
std::vector<Diagnostic> check_first_reads(const ir::TileProgram& program);

}  // namespace tilewright::analysis
