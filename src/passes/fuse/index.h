// How indices go with the variables of loops.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A loop's body with another index in place of its variable: of 64 bits, with the variable's values.
ir::Body with_index(const ir::For& f, const ir::Expr& index, const ir::ProgramTables& program);

bool mentions(const ir::Stmt& s, ir::BufferId id);

// Loops around a point, outermost first.
using Nest = std::vector<const ir::For*>;

// Does the index take every value of 0 .. extent once as the loops run? Sums of loop variables are digits of it.
bool sweeps(const ir::Expr& index, int64_t extent, const Nest& nest);

// Is it a tile on chip of known shape, no view into it, of which every use loads or stores an element?
bool is_tile_of_elements(ir::BufferId id, const ir::Body& block, const ir::ProgramTables& program);

}  // namespace tilewright::passes
