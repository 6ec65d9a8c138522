// mbarriers on which two roles take turns.
#pragma once
#include <set>

#include "ir/program.h"

namespace tilewright::passes {

// Pairs of mbarriers, one for each of two roles: a role arrives with all its warps at its own and waits on the other's,
// in turn, one of the roles beginning with the arrival and the other with the wait. Whoever has waited then knows that
// all of its own role did what it did before its last arrival: without that the other role could not have told.
std::set<ir::BufferId> batons_of(const ir::ProgramTables& program, const ir::Launch& launch);

// The mbarrier at which the first lane of every warp arrives by this statement; null: it is no such statement.
const ir::Element* arrival_of_warps(const ir::Stmt& s);

}  // namespace tilewright::passes
