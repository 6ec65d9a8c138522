// What the code of a GPU would like to know of a call: that rows are whole pieces of 16 bytes, that 32 bits number the
// blocks, and the hardware each of their dimensions.
//
// Needs: canonicalize. Leaves: the program with such facts among its assumptions, which the host checks at each call;
// a call of which they do not hold takes the program as it was. Nothing is assumed that is known.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

ir::TileProgram assume_fast_calls(ir::TileProgram program);

// The program for tensors that begin at any of their elements; and whether a tensor does. Of others wide accesses may
// ask for more.
ir::TileProgram assume_no_alignment(ir::TileProgram program);
bool begins_anywhere(const ir::Buffer& tensor);

// The number of the launch's blocks, in 64 bits; and whether the program's assumptions say that 31 bits hold it, with
// room for sums of two.
ir::Expr blocks_of(const ir::Launch& launch);
bool blocks_are_few(const ir::Launch& launch, const ir::ProgramTables& program);
// Whether the hardware numbers the blocks in all dimensions, as far as the assumptions say.
bool fits_hardware_grid(const ir::Launch& launch, const ir::ProgramTables& program);

}  // namespace tilewright::passes
