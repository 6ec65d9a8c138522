// Which elements of a buffer belong to one thread alone.
#pragma once
#include <set>

#include "ir/program.h"

namespace tilewright::analysis {

// True if different threads of the block are sure to index different elements: every thread variable stands in an index
// whose other terms all threads agree on. `bound` are the variables that the launch's body binds.
bool is_own_element(const std::vector<ir::Expr>& index, const ir::Launch& launch, const std::set<ir::VarId>& bound);

}  // namespace tilewright::analysis
