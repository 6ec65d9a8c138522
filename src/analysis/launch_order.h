// Launches that may begin before those before them have ended (programmatic dependent launch): who waits where, and
// what that asks of a program. Holds after canonicalize, which turns branches on ranges of threads into roles.
#pragma once
#include <vector>

#include "ir/program.h"

namespace tilewright::analysis {

// Waits until the launches before have ended and what they wrote is there.
bool waits_for_launches(const ir::Stmt& stmt);
// Lets the launches after begin, as far as this block is concerned.
bool lets_launches_begin(const ir::Stmt& stmt);

// A finding for each wait that a thread may not come to, so that the launch could end before those before it; and for
// each access before the wait to memory that a launch before may still use. The call of the program before this one
// counts: its last launches run while the first one begins.
std::vector<Diagnostic> check_launch_order(const ir::TileProgram& program);

}  // namespace tilewright::analysis
