// A role whose threads do nothing by themselves needs one warp of them.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Where the threads of a role only wait, and begin together what one of them begins for all (TMA), its first warp does
// so alone: fewer warps poll, and none of them has to be waited for before the next beginning. A SetRegisters in front
// stays with all threads. Not where anybody else waits for the same mbarriers: who skipped a phase could not tell
// theirs.
ir::Body narrow_roles(const ir::ProgramTables& program, const ir::Launch& launch);

}  // namespace tilewright::passes
