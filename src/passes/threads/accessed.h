// Which buffers statements read and write, as passes ask that move statements past each other.
#pragma once
#include <set>

#include "ir/program.h"

namespace tilewright::passes {

using Buffers = std::set<ir::BufferId>;

// Owners of memory, not views. An update is a read and a write; what only orders is neither.
Buffers read_by(const ir::Body& body, const ir::ProgramTables& program);
Buffers written_by(const ir::Body& body, const ir::ProgramTables& program);
Buffers accessed_by(const ir::Body& body, const ir::ProgramTables& program);

bool meet(const Buffers& a, const Buffers& b);

// Of the boxes of maps, and of shapes on chip; 0 for what is no constant.
std::vector<int64_t> constants(const std::vector<ir::Expr>& extents);
// Whether a tile operation writes all of the buffer, whatever it held.
bool writes_whole(const ir::Stmt& s, ir::BufferId id, const ir::ProgramTables& program);

}  // namespace tilewright::passes
