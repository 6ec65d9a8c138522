// Quotients of all lanes of a vector at once.
#pragma once
#include "passes/lower/lowering.h"

namespace tilewright::passes {

inline constexpr int64_t kSharingLanes = 4;    // the fewest for which a divisor's reciprocal pays
inline constexpr int64_t kSharingPoints = 16;  // the fewest points of a thread for which a second look at them pays

// The body of one of `count` lanes, in which quotients of registers are read from where code before the loop over the
// lanes, which goes to `before`, has computed all of them: the device computes each with a branch, these have one.
ir::Body with_quotients_of_all(ir::Body body, const ir::Expr& lane, int64_t count, Lowering& l,
                               function_ref<bool(ir::BufferId)> is_memory, ir::Body& before);

// x / y by the reciprocal of y, which points that have it share: `value`, if `surety` is at least kLeastSure, which it
// is of no divisor below 0, and of nothing that is no number. Then the quotient is rounded once, as division rounds it.
struct QuotientOfPoint {
  ir::Body names;
  ir::Expr value, surety;
};
QuotientOfPoint quotient_of_point(const ir::Expr& x, const ir::Expr& y, Lowering& l);
inline constexpr double kLeastSure = 0x1p-60;

}  // namespace tilewright::passes
