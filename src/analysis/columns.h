// Statements that do the same to each column of a matrix.
#pragma once
#include <optional>

#include "ir/program.h"

namespace tilewright::analysis {

// The variable of a Map along the columns of a matrix; none: it does not go over all of it, one column a point.
std::optional<size_t> column_of(const ir::ProgramTables& program, const ir::Map& map, ir::BufferId matrix);
// Whether a statement that touches the result does the same to each of its columns.
bool columns_are_apart(const ir::ProgramTables& program, const ir::Stmt& s, ir::BufferId result);

}  // namespace tilewright::analysis
