// Neighbours that are loaded under conditions, which g++ loads wrongly.
#pragma once
#include "ir/program.h"

namespace tilewright::codegen {

// Whether the compiler may make one group of loads that stand under conditions, and of the stores of what comes of
// them: several in a turn of the loop, or in its turns, if they are few enough to be written out. g++ 12 and others
// then load all vectors of the group by the mask of its first one. Tiles on chip have their room, and no masks.
bool has_masked_group(const ir::For& loop, const ir::ProgramTables& program);

}  // namespace tilewright::codegen
