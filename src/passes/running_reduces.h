// A running maximum (minimum, and, or) into a tile that nothing else ever writes begins with the value that changes
// none: there is nothing before it, and what a register happens to hold has no say.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Fills such tiles before their first use, in the role that alone uses them where there is one.
void begin_running_reduces(const ir::TileProgram& program, ir::Launch& launch);

}  // namespace tilewright::passes
