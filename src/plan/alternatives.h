// What else a launch might have.
#pragma once
#include <string>
#include <vector>

#include "plan/plan.h"

namespace tilewright::plan {

// Lines to hand in (hints.h), each of which fixes one decision of the plan otherwise. Whether the launch can have them
// is another question.
std::vector<std::string> lines_otherwise(const Plan& plan);

}  // namespace tilewright::plan
