// Roles part the threads of a block. What stands around roles all threads execute, each as soon as it comes there:
// where it touches memory on chip that another thread has touched since all of them last met, there is a barrier of the
// block.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Needs: roles that canonicalize() has found. Leaves alone what some threads may not reach, and what waits by itself.
void meet_beside_roles(ir::TileProgram& program, ir::Launch& launch);

}  // namespace tilewright::passes
