// What a block stores to a tensor for good: TMA orders no stores, so that they may be under way together only where
// they have no element in common.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// The global tensors to which the launch only copies tiles. Reads stand before the copy, in no loop with it. What other
// blocks do is for the program to order.
struct StoredTensors {
  // No element twice, by different copies or in different turns of loops. Copies that combine alike may meet, in any
  // order.
  std::set<ir::BufferId> once;
  std::set<ir::BufferId> again;  // maybe: a store waits until those before are written
};
StoredTensors stored_tensors(const ir::ProgramTables& program, const ir::Launch& launch);

}  // namespace tilewright::analysis
