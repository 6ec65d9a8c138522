// What the points of a map have to do with the elements that it accesses.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// Whether each point has an element of its own: every variable of the map tells which it is.
bool has_element_for_each(const ir::Map& map, const std::vector<ir::Expr>& indices);

}  // namespace tilewright::analysis
