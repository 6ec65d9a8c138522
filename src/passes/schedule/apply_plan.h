// A plan as the statements that users write: roles, mbarriers, copies that complete on them.
#pragma once
#include "ir/program.h"
#include "plan/plan.h"

namespace tilewright::passes {

// Changes the launch as decide_plan() says for it, on the same program; mechanical: InternalError where the plan is of
// another. Leaves a canonical tile program. The fragments that go to global memory through shared memory, by TMA, are
// told in the plan. Gives the variables of the launch's blocks as they were, and the names that these have in roles
// that are made of others: none is ever below 0, though what walks tiles computes them.
std::vector<ir::VarId> apply_plan(plan::Plan& plan, ir::TileProgram& program, size_t launch);

// Why a schedule of the plan has nothing for a warp of its own; empty: each that wants one has.
std::string misfit_of_warps(plan::Plan plan, ir::TileProgram program, size_t launch);

}  // namespace tilewright::passes
