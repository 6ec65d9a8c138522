// Tiles that are read though nothing was ever written to them.
#pragma once
#include <vector>

#include "ir/program.h"

namespace tilewright::analysis {

// A finding for each tile whose first read surely comes before any write that could be there. What may have been
// written on some path, by other threads or in an earlier turn of a loop, is no finding, nor is anything in a program
// that gives nothing to a caller.
std::vector<Diagnostic> check_first_reads(const ir::TileProgram& program);

}  // namespace tilewright::analysis
