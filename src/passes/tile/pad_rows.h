// Products of fewer rows than a matrix instruction has.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Where all products of a launch have the same few rows, up to 15, its tiles get 16: a row never meets another one, so
// what the rows beyond hold does not matter, and nothing of them leaves the block. Launches of which that is not
// plain stay as they are. On canonical tile programs, for GPUs; leaves them so.
ir::TileProgram pad_rows(ir::TileProgram program);

}  // namespace tilewright::passes
