#include "analysis/slots_apart.h"

#include "ir/operators.h"

namespace tilewright::analysis {

using namespace ir;

bool are_other_slots(const Expr& a, const Expr& b) {
  const auto* x = a.as<Binary>();
  const auto* y = b.as<Binary>();
  if (!x || !y || x->op != BinaryOp::FloorMod || y->op != BinaryOp::FloorMod || !equal(x->b, y->b)) return false;
  const auto slots = constant_int(x->b), distance = constant_int(sub(x->a, y->a));
  return slots && distance && *slots > 0 && *distance % *slots != 0;
}

}  // namespace tilewright::analysis
