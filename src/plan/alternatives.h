// What else a launch might have.
#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"

namespace tilewright::plan {

// Lines to hand in (hints.h), each of which fixes one decision of a launch's plan otherwise. Whether the launch can
// have them is another question.
std::vector<std::string> lines_otherwise(const Plan& plan, const ir::ProgramTables& program, const ir::Launch& launch);

}  // namespace tilewright::plan
