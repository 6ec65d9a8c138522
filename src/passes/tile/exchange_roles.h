// Some of the threads may exchange values through shared memory too: `if tx < 128 { ... }` becomes a role then, in
// which barriers of these threads can be placed.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// The body of the launch. Branches that whole warps take, whose thread code reads shared memory that it writes.
ir::Body exchange_roles(const ir::ProgramTables& program, const ir::Launch& launch);

}  // namespace tilewright::passes
