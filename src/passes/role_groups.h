// Roles that run beside each other, and where all of them meet.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

using RoleGroup = std::vector<const ir::Stmt*>;

// The end of the neighbouring roles from `first` on that are of different threads, and so run beside each other. A role
// of threads that one before it has comes after that.
size_t end_of_roles(const ir::Body& body, size_t first);
// The role; those within it, as chains of branches become, where it holds nothing else.
void add_innermost_roles(const ir::Stmt& role, RoleGroup& out);

// A barrier of the block that stands in every one of neighbouring roles, which together are all threads, before any of
// them waits for another: all threads meet there, not those of each role alone. It becomes a named barrier of all.
void meet_in_roles(ir::Launch& launch);

}  // namespace tilewright::passes
