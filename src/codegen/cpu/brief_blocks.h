// Blocks that are done before other threads would have begun.
#pragma once
#include "ir/program.h"

namespace tilewright::codegen {

// So many blocks of a launch at the loop level take no longer in turn than threads take to begin: at least 1.
int64_t brief_blocks(const ir::Launch& launch);

}  // namespace tilewright::codegen
