// Tensors of 4-bit integers as bytes of two.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Tensors of 4-bit integers of which whole bytes are copied into tiles, and these tiles, become tensors and tiles of
// bytes, and what code loads from the tiles is half a byte: copies of them are as wide as any, and TMA does them. A
// tensor that a program uses otherwise stays as it is. Needs canonical tile programs, for GPUs; leaves them so, but
// for the types of these parameters, whose memory is the same.
ir::TileProgram pack_nibbles(ir::TileProgram program);

}  // namespace tilewright::passes
