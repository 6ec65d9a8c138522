// Maps of which it matters which thread runs a point.
#pragma once
#include <set>

#include "analysis/uniformity.h"

namespace tilewright::passes {

// The Maps that change what a thread keeps, or read what threads differ in. A variable that every point stores before
// it does anything else with it, and that nothing else uses, is the point's own.
std::set<ir::StmtId> maps_of_threads(const ir::ProgramTables& program, const ir::Launch& launch,
                                     const analysis::Uniformity& uniformity);

}  // namespace tilewright::passes
