// What the code of a GPU would like to know of a call: that rows are whole pieces of 16 bytes, that 32 bits number the
// blocks, and the hardware each of their dimensions.
//
// Needs: canonicalize. Leaves: the program with such facts among its assumptions, which the host checks at each call;
// a call of which some do not hold takes the program with those that do. Nothing is assumed that is known.
#pragma once
#include "ir/program.h"
#include "support/function_ref.h"

namespace tilewright::passes {

ir::TileProgram assume_fast_calls(ir::TileProgram program);
// With those of the facts alone, by their number among them, that hold of a call.
ir::TileProgram assume_what_holds(ir::TileProgram program, function_ref<bool(const ir::Assumption&, size_t)> holds);

// The program for tensors that begin at any of their elements (analysis/panels.h, begins_anywhere).
ir::TileProgram assume_no_alignment(ir::TileProgram program);

// Whether the program's assumptions say that 31 bits hold the number of the launch's blocks, with room for sums of two.
bool blocks_are_few(const ir::Launch& launch, const ir::ProgramTables& program);
// Whether the hardware numbers the blocks in all dimensions, as far as the assumptions say.
bool fits_hardware_grid(const ir::Launch& launch, const ir::ProgramTables& program);

}  // namespace tilewright::passes
