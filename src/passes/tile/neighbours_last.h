// Tensors whose elements lie side by side along another dimension than the last.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Single elements of such tensors are named by a view that has that dimension last, as what makes vectors of accesses
// looks for it there.
ir::Body with_neighbours_last(const ir::Body& body, ir::ProgramTables& program);

}  // namespace tilewright::passes
