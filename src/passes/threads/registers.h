// Arrays of a thread's own, as its registers.
#pragma once
#include "passes/lower/intervals.h"

namespace tilewright::passes {

// Whether the element is a thread's own, inside of its array whatever the variables are: it may be read anywhere.
bool is_in_registers(const ir::ProgramTables& program, const ir::Load& element, const Intervals& ranges);

}  // namespace tilewright::passes
