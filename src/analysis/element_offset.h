// Where an element of a buffer lies.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// In elements of the buffer's type from the start of its root, in 64 bits; without the swizzle of its memory.
ir::Expr element_offset(const ir::ProgramTables& program, ir::BufferId id, const std::vector<ir::Expr>& index);

}  // namespace tilewright::analysis
