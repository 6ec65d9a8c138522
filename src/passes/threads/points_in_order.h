// A Map without a layout.
#pragma once
#include "passes/threads/deal.h"

namespace tilewright::passes {

// Point p, in row-major order, belongs to thread p mod T.
ir::Body points_in_order(const ir::Map& map, const Team& team, Lowering& l);

}  // namespace tilewright::passes
