// Tiles that a role fills more than once in a turn of its loop, for another role that reads each filling behind a
// barrier of its own.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Some programs have one tile for all of these fillings, and nothing keeps the role that fills it from the next one
// before the other has read this one: they are right by the time that something else takes. Each filling gets a tile of
// its own, with a warning, where a program that has the order cannot tell: every filling is of the whole tile, the role
// tells of it by these barriers alone, and the reader alone waits for them, in the same order, right before it reads.
// Needs roles; leaves them so.
void part_turn_tiles(ir::TileProgram& program, ir::Launch& launch);

}  // namespace tilewright::passes
