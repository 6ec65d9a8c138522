// The last turns of loops that would do nothing.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A loop of known length ends behind the last turn that may do something: where all that a turn does is stores that no
// element of a tensor is at, or stands under conditions that never hold there, by the ranges of blocks, threads and
// loops. Needs tile programs whose indices are sums (inline_lets); leaves them so.
ir::TileProgram end_idle_turns(ir::TileProgram program);

}  // namespace tilewright::passes
