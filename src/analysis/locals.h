// Where the locals of a program are declared.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// The locals of which all uses in the body are in it, and not all of them in one that is further in; without those that
// are declared around it.
std::set<ir::BufferId> locals_of(const ir::Body& body, const ir::ProgramTables& program,
                                 const std::set<ir::BufferId>& declared);
// The same where a turn of a loop may find in a local what one before has left: such a local is the loop's neighbour.
std::set<ir::BufferId> locals_that_stay(const ir::Body& body, const ir::ProgramTables& program,
                                        const std::set<ir::BufferId>& declared);

}  // namespace tilewright::analysis
