// What is known to divide an integer.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// The largest power of two, at most 2^20, that is known to divide the value. It holds even where the arithmetic wraps.
int64_t power_of_two_divisor(const ir::Expr& e);
// The same where the program's assumptions hold: "N % 8 == 0" is what N is known by, and names by their values.
int64_t power_of_two_divisor(const ir::Expr& e, const ir::ProgramTables& program);

// Whether the program's assumptions say that something does not divide the value: "N % 8 != 0".
bool is_no_multiple(const ir::Expr& e, const ir::ProgramTables& program);

// Writes down what divides the values of names. An index by a name is then known as one by its value would be, which
// cannot stand in its place where it wraps around its type.
void note_multiples(ir::ProgramTables& program);

}  // namespace tilewright::analysis
