// The program that engines start from.
#pragma once
#include "passes/pipeline.h"

namespace tilewright {

// Symbols in the order in which calls solve them, and behind the passes that all engines share. Throws as they do.
ir::TileProgram canonical(const ir::TileProgram& program, passes::Observer observer);
ir::TileProgram canonical(const ir::TileProgram& program);

}  // namespace tilewright
