// Loads from global memory into a thread's registers under a condition, which a device has without a branch: behind one
// its compiler waits for what was loaded before it begins the next.
#pragma once
#include <optional>

#include "ir/program.h"

namespace tilewright::codegen {

// A load of one access at a place that may be computed where the condition is false.
struct PlainLoad {
  ir::Element from, to;
  int64_t bytes = 0;
};
// None: the statement is something else.
std::optional<PlainLoad> plain_load(const ir::Stmt& s, const ir::ProgramTables& program);
// Nothing but such loads and conditions around some of them, with or without fills for where they are false.
bool are_guarded_loads(const ir::If& n, const ir::ProgramTables& program);

// Whether an arm of a select may be computed where its condition is false, if only its loads are not made: they are all
// from global memory.
bool may_load_under(const ir::Expr& e, const ir::ProgramTables& program);

}  // namespace tilewright::codegen
