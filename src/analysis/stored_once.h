// What a block stores to a tensor for good: TMA tells within a launch that it has read what it stores, not that the
// store is done, so that no other store, and no read, may follow it.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// The global tensors to which the launch only copies tiles, no element twice: by different copies, or in different
// turns of loops. Copies that combine alike may meet, in any order. Reads stand before the copy, in no loop with it. A
// loop that finds its tile by a division, the quotient along one dimension and what is left along another, is taken to
// come to each tile once. What other blocks do is for the program to order.
std::set<ir::BufferId> stored_once(const ir::ProgramTables& program, const ir::Launch& launch);

}  // namespace tilewright::analysis
