// Statements of all columns of a matrix, as those of some of them.
#pragma once
#include <optional>

#include "ir/program.h"

namespace tilewright::passes {

// A statement that touches the matrix as one of `columns` columns of it, from `first` on. None: its columns are not
// apart (analysis/columns.h, columns_are_apart).
std::optional<ir::Stmt> narrowed(ir::ProgramTables& program, const ir::Stmt& s, ir::BufferId matrix, int64_t first,
                                 int64_t columns);

}  // namespace tilewright::passes
