// Operands that many blocks bring are laid out for their products once, for all of them.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Of a launch that was lowered: where a loop of a block copies tiles from tensors that the launch does not write, and
// products alone read them, launches before bring those of all blocks and turns into workspaces, in the tiles' layout,
// and the products read them there. Whether they do is known at the call where shapes are: a workspace that few blocks
// would share, or that there is no memory for, is not there, and blocks bring their tiles as before. Such a workspace
// has a tile in the table, and no elements where it is not wanted. `copied`: tiles that nothing but copies from tensors
// writes, each all of it. Gives the launches before and this one; none: nothing is brought once.
std::optional<std::vector<ir::Launch>> pack_once(ir::LoopProgram& program, const ir::Launch& launch,
                                                 const std::set<ir::BufferId>& copied);

}  // namespace tilewright::passes
