// Points of a map that surely get in each other's way.
#pragma once
#include <vector>

#include "ir/program.h"

namespace tilewright::analysis {

// A finding where two points of a map store to one element what surely differs, or where a point reads an element that
// another one writes, as a copy between parts of one tile may. Elements that the caller gives count as different
// values; those that a kernel computes may be alike.
std::vector<Diagnostic> check_map_conflicts(const ir::TileProgram& program);

}  // namespace tilewright::analysis
