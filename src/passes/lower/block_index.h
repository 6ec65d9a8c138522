// The coordinates of a block from its linear index.
#pragma once
#include "passes/lower/lowering.h"

namespace tilewright::passes {

// Binds the block variables, in the launch's order (its swizzle), and tells the intervals what they are. They are
// computed in the type of `block`, which all blocks must fit.
ir::Body bind_block(const ir::Launch& launch, const ir::Expr& block, Lowering& l);

}  // namespace tilewright::passes
