// Points of a map that change one element by what is there (`s[i] += x[i, j]`) take turns: the variables that the
// element does not depend on become loops inside of the map.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

void let_meeting_points_take_turns(ir::TileProgram& program, ir::Launch& launch);

}  // namespace tilewright::passes
