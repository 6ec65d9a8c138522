// What is known to divide an integer.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// The largest power of two, at most 2^20, that is known to divide the value. It holds even where the arithmetic wraps.
int64_t power_of_two_divisor(const ir::Expr& e);
// The same where the program's assumptions hold: "N % 8 == 0" is what N is known by.
int64_t power_of_two_divisor(const ir::Expr& e, const ir::ProgramTables& program);

}  // namespace tilewright::analysis
