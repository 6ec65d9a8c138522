// Conditions that all lanes of a vector answer alike.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Lanes of a vector: a variable from 0 to count - 1, a power of two.
struct VectorLanes {
  ir::VarId var;
  int64_t count = 1;
};

// The body with conditions around all of it said of the first lane, where that decides for all: whole vectors lie on
// one side of a bound that is a multiple of their lanes. What must hold for it and is known at the call alone goes to
// `needs`; null: nothing may be asked of the call.
ir::Body under_common_conditions(const ir::Body& body, const VectorLanes& lanes, const ir::ProgramTables& program,
                                 std::vector<ir::Expr>* needs);

// The condition that stands around all of a body, and that no lane and no load of it decides; null: there is no such.
const ir::If* condition_of_all(const ir::Body& body, ir::VarId lane);
// The body without such conditions around it.
const ir::Body& under_conditions(const ir::Body& body, ir::VarId lane);

}  // namespace tilewright::passes
