// Quotients of all lanes of a vector, or of all points of a thread, at once.
#pragma once
#include "passes/threads/deal.h"

namespace tilewright::passes {

inline constexpr int64_t kSharingLanes = 4;  // the fewest for which a divisor's reciprocal pays

// The body of one of `count` lanes, in which quotients of registers are read from where code before the loop over the
// lanes, which goes to `before`, has computed all of them: the device computes each with a branch, these have one.
ir::Body with_quotients_of_all(ir::Body body, const ir::Expr& lane, int64_t count, Lowering& l,
                               function_ref<bool(ir::BufferId)> is_memory, ir::Body& before);

// A Map of registers that are divided by what many of a thread's points share: a first look tells whether products with
// its reciprocal are the quotients of all points, which division, with a branch for each, is for otherwise. None: it is
// no such.
std::optional<ir::Body> shared_quotients(const ir::Map& map, const FragmentLayout& points, const Team& team,
                                         Lowering& l, function_ref<ir::Body(const Held&)> body_of_point);

}  // namespace tilewright::passes
