// Tiles that threads move together, and of which each of them would move another.
#pragma once
#include <vector>

#include "ir/program.h"

namespace tilewright::analysis {

// A finding for each tile op that is surely come to with a tile that begins, or ends, elsewhere for one thread than for
// another of those that do it together, or with another value to fill it with: they are threads of one block or role,
// and it is done once. What depends on memory is not looked at, nor are copies of a thread's own memory.
std::vector<Diagnostic> check_operand_agreement(const ir::TileProgram& program);

}  // namespace tilewright::analysis
