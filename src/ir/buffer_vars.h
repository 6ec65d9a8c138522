// Variables in rows of the buffer table.
#pragma once
#include "ir/program.h"

namespace tilewright::ir {

// Those that buffers stand by: what a body computes of a tensor's address, shape or strides is read wherever the tensor
// is, though no statement mentions it there.
std::set<VarId> vars_of_buffers(const ProgramTables& program);
// Those that one buffer stands by, its own and its root's.
std::set<VarId> vars_of_buffer(const ProgramTables& program, BufferId id);

}  // namespace tilewright::ir
