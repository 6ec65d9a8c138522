// Which points of a Map are lanes of a vector.
#pragma once
#include "ir/program.h"
#include "layout/fragment.h"
#include "support/function_ref.h"

namespace tilewright::passes {

// The dimension along which a thread's neighbours are lanes: the last one, but where its threads hold no neighbours, or
// nothing is in memory, one along which memory holds neighbours, or all share a divisor.
int lanes_along(const ir::Map& map, const FragmentLayout& points, function_ref<bool(ir::BufferId)> is_memory);

// Of how many lanes each the quotient of the lane's number is in an index; 1: it is in none.
int64_t lanes_of_quotient(const ir::Expr& index, ir::VarId lane, int64_t vector);
// With `quotient` in place of lane // lanes.
ir::Expr with_quotients(const ir::Expr& index, ir::VarId lane, int64_t lanes, const ir::Expr& quotient);

// In indices and conditions, names of integers that are computed from variables alone give way to what they stand
// for: it tells where they lead.
ir::Body with_plain_indices(const ir::Body& body, const ir::ProgramTables& program);

}  // namespace tilewright::passes
