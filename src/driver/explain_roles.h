// What the warps of a block do, role by role, as lines for people.
#pragma once
#include "driver/explain_gpu.h"

namespace tilewright {

// Of a launch with rings and roles written out; one role, "all", where there are none.
std::vector<RoleFacts> roles_of(const ir::TileProgram& program, const ir::Launch& launch, const plan::Plan& plan);

}  // namespace tilewright
