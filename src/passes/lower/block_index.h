// The coordinates of a block from its linear index.
#pragma once
#include "passes/lower/lowering.h"

namespace tilewright::passes {

// Whether the launch's swizzle changes the order of its blocks: a single row or column of them has but one.
bool reorders_blocks(const ir::Launch& launch);

// Binds the block variables, in the launch's order (its swizzle), and tells the intervals what they are. They are
// computed in the type of `block`, which all blocks must fit.
ir::Body bind_block(const ir::Launch& launch, const ir::Expr& block, Lowering& l);

}  // namespace tilewright::passes
