// What a call checks and solves, as JSON.
#pragma once
#include <nlohmann/json.hpp>

#include "runtime/launch_plan.h"

namespace tilewright {

// An expression of a plan as its program writes it.
std::string expression_text(const runtime::IntProgram& e, const runtime::LaunchPlan& plan);
nlohmann::ordered_json plan_json(const runtime::LaunchPlan& plan);

}  // namespace tilewright
