// Numbers for statements, so that tables can speak of them: nodes are shared, and one that stands at two places is two
// statements.
#pragma once
#include "ir/program.h"

namespace tilewright::ir {

// Every statement of the launch, in maps too, has a number that no other one has or had. Who has one already keeps it,
// of those that are alike the first.
void number_statements(Launch& launch);
Launch numbered(Launch launch);

// InternalError if a statement has no number, or that of another.
void check_numbered(const Launch& launch);

}  // namespace tilewright::ir
