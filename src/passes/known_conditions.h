// Conditions that always hold, or never, and which of two integers is the lesser, by the ranges of blocks, threads and
// loops.
//
// Needs: a TileProgram that verifies. Leaves: constants in their place, the lesser in a minimum's. Arithmetic that
// might wrap is left alone.
#pragma once
#include "ir/program.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

// `known`: of variables that are not the launch's own. Whether anything was decided.
bool decide_known_conditions(ir::Launch& launch, const Intervals& known = {});
// The side of a branch whose condition is a constant; none: the statement is no such.
std::optional<ir::Body> decided(const ir::Stmt& s);
// Such branches are that side; a loop or map of which nothing is left goes.
ir::Body without_decided_branches(const ir::Body& body);

}  // namespace tilewright::passes
