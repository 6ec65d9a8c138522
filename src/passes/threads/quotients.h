// Quotients of all lanes of a vector at once.
#pragma once
#include "passes/lower/lowering.h"

namespace tilewright::passes {

inline constexpr int64_t kSharingLanes = 4;  // the fewest for which a divisor's reciprocal pays

// The body of one of `count` lanes, in which quotients of registers are read from where code before the loop over the
// lanes, which goes to `before`, has computed all of them: the device computes each with a branch, these have one.
ir::Body with_quotients_of_all(ir::Body body, const ir::Expr& lane, int64_t count, Lowering& l,
                               function_ref<bool(ir::BufferId)> is_memory, ir::Body& before);

}  // namespace tilewright::passes
