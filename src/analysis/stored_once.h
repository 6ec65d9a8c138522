// What a block stores to a tensor for good: TMA tells within a launch that it has read what it stores, not that the
// store is done, so that no other store, and no read, may follow it.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// The global tensors to which the launch only copies tiles, no element twice: by different copies, or in different
// turns of loops. Copies that combine alike may meet, in any order. Reads stand before the copy, in no loop with it. A
// loop whose tile is a multiple of its variable by what run time knows, or a quotient of it and what is left of that,
// is taken to come to each tile once. What other blocks do is for the program to order.
std::set<ir::BufferId> stored_once(const ir::ProgramTables& program, const ir::Launch& launch);

}  // namespace tilewright::analysis
