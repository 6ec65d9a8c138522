// A loop's body with another index in place of its variable.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// `index` is of 64 bits and has the values of the loop's variable.
ir::Body with_index(const ir::For& f, const ir::Expr& index, const ir::ProgramTables& program);

}  // namespace tilewright::passes
