// Two teams that take the iterations of a loop in turn: partition by iteration.
#pragma once
#include "analysis/iteration_parts.h"
#include "plan/plan.h"

namespace tilewright::passes {

// For scores = f(q k_j), result = result * s_j + scores v_j over one loop, with rows for one warpgroup and threads for
// two: a product of so few rows would be cut along its columns, which costs more shared memory reads than
// multiplications. Here all of scores_j belongs to team j mod 2, while each team keeps half of the columns of the
// result and adds every block in the program's order, so nothing is computed otherwise than the program says. What an
// iteration hands on (the scores, and rows like the maximum) goes to the other team through one tile in shared memory:
// who writes it next is who has just read it, so it needs a barrier for "ready" and none for "free". Each half of v has
// one last reader, and is given back on its own. Tiles whose rows lie anywhere are gathered by a warp of the loader's.
//
// As the plan says, which is one of such teams (plan/decide.h, teams_by_iteration). The fragments that leave by TMA.
std::vector<ir::BufferId> take_iterations_in_turn(ir::TileProgram& program, ir::Launch& launch, const plan::Plan& plan);

}  // namespace tilewright::passes
