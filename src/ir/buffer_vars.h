// Variables and buffers in rows of the buffer table.
#pragma once
#include "ir/program.h"

namespace tilewright::ir {

// Those that buffers stand by: what a body computes of a tensor's address, shape or strides is read wherever the tensor
// is, though no statement mentions it there.
std::set<VarId> vars_of_buffers(const ProgramTables& program);
// Those that one buffer stands by, its own and its root's.
std::set<VarId> vars_of_buffer(const ProgramTables& program, BufferId id);
// Whether the buffer stands by one of the names: it is known where they are, and no earlier.
bool stands_by(const ProgramTables& program, BufferId id, const std::set<VarId>& names);
// Whether what the statement uses stands by names that it binds: in each turn it is another buffer.
bool binds_buffers(const ProgramTables& program, const Stmt& s);
// What a body mentions, with the storage that it is, and what those stand by in turn: a tensor at the address of
// another's element is found by way of the other, which no statement need mention.
std::set<BufferId> buffers_needed(const Body& body, const ProgramTables& program);

}  // namespace tilewright::ir
