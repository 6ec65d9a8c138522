// Names of places.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Names that a program gives to sums of multiples of variables are replaced by what they stand for: what is known of
// an index, its divisors above all, is then seen in it. Needs canonical tile programs; leaves them so.
ir::TileProgram inline_lets(ir::TileProgram program);

}  // namespace tilewright::passes
