// Shapes, strides and places of tensors that the turns of a loop, or the points of a map, say.
//
// They are read wherever the tensor is, though no statement mentions them there: a pass that gives a loop or a map
// another variable would leave them behind. They get names in the turn, before its first use of the tensor. Needs and
// leaves a TileProgram that verifies.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

void name_tensors_of_turns(ir::TileProgram& program, ir::Launch& launch);

}  // namespace tilewright::passes
