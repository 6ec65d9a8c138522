// Which buffers statements read and write, and where.
#pragma once
#include <optional>
#include <set>

#include "ir/program.h"

namespace tilewright::analysis {

using Buffers = std::set<ir::BufferId>;

// Owners of memory, not views. An update is a read and a write; what only orders is neither.
Buffers read_by(const ir::Body& body, const ir::ProgramTables& program);
Buffers written_by(const ir::Body& body, const ir::ProgramTables& program);
Buffers accessed_by(const ir::Body& body, const ir::ProgramTables& program);

// How often statements of the body say that they access the owner of memory, or a view of it.
int accesses_of(const ir::Body& body, ir::BufferId owner, const ir::ProgramTables& program);
// Whether statements of a launch but `here` may change global memory of the buffer: neighbours of what a block reads
// here, which others store.
bool changes_elsewhere(const ir::Launch& launch, const ir::Body& here, ir::BufferId id,
                       const ir::ProgramTables& program);

// Whether one of the first and one of the second may be the same memory.
bool meet(const Buffers& a, const Buffers& b, const ir::ProgramTables& program);

// Of the boxes of maps, and of shapes on chip; 0 for what is no constant.
std::vector<int64_t> constants(const std::vector<ir::Expr>& extents);
// Whether a tile operation writes all of the buffer, whatever it held.
bool writes_whole(const ir::Stmt& s, ir::BufferId id, const ir::ProgramTables& program);

// Whether anything names the buffer without a box of it, or asks where it is: then it cannot become slots of a ring.
bool names_as_a_whole(const ir::Body& body, ir::BufferId id);

// The box of a buffer that a Map accesses: which of its variables each dimension follows, from which index on.
struct Followed {
  std::vector<int> dims;       // -1: the index stays
  std::vector<int64_t> first;  // one a dimension
  // Whether a Map over `points` accesses all of a buffer of this shape.
  bool is_whole(const std::vector<int64_t>& points, const std::vector<int64_t>& shape) const;
};
// None: the indices are no distinct variables plus constants.
std::optional<Followed> followed(const std::vector<ir::Expr>& indices, const std::vector<ir::VarId>& vars);

}  // namespace tilewright::analysis
