// What the lanes of a vector have in common: quotients of their indices, and what they read at one place.
#pragma once
#include "analysis/body_order.h"
#include "passes/lower/lowering.h"

namespace tilewright::passes {

// Quotients by a power of two of which the lanes' number is no part: (8 x + lane) // 8 is x where lane is below 8, and
// its remainder is lane; (8 x + lane) // 32 is 8 x // 32, and its remainder 8 x % 32 + lane.
ir::Body without_lanes_in_quotients(const ir::Body& body, ir::VarId lane, Lowering& l);

struct SharedLoads {
  ir::Body names;                   // a Let for each, in an order in which those behind may use those before
  std::vector<ir::BufferId> roots;  // whose memory each reads
  ir::Body body;                    // with the names in place of the loads
};
// Names for what the body reads at one place for all lanes, of memory or where an index needs it, and that nothing in
// the body changes before. They are loaded whether or not the body comes to it: `may_load` says where that is allowed
// of a load that it does not surely make.
SharedLoads name_shared_loads(ir::Body body, ir::VarId lane, Lowering& l,
                              function_ref<analysis::BodyOrder(const ir::Body&)> order_of,
                              function_ref<bool(ir::BufferId)> is_memory, function_ref<bool(const ir::Load&)> may_load);

}  // namespace tilewright::passes
