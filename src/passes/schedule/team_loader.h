// What the loader's warps do for teams that take iterations in turn: each fills one ring, one of them also brings what
// is needed once.
#pragma once
#include "passes/schedule/team_loop.h"

namespace tilewright::passes {

ir::Body load_once(const TeamLoop& loop);
// All fills of a ring.
ir::Body load_ring(const TeamLoop& loop, const TeamRing& ring);
// Variables on which the tiles of the rings depend.
std::set<ir::VarId> vars_of_rings(const TeamLoop& loop);

}  // namespace tilewright::passes
