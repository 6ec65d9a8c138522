// Where threads gather by cp.async: which rows, known before the slot is free.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// In short loops of threads that copy by the queue cp_async, what each turn first reads from global memory that the
// launch does not write (the number of a row) is read for all turns before the loop, and before the waits in front of
// it: the device compiler moves no load over a copy, so that each turn would wait for memory. Needs canonical tile
// programs; leaves them so.
ir::TileProgram fetch_ahead(ir::TileProgram program);

}  // namespace tilewright::passes
