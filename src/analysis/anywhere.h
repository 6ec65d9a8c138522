// Expressions that may be computed where a program does not come to them, instead of a branch around them.
#pragma once
#include "ir/program.h"
#include "support/function_ref.h"

namespace tilewright::analysis {

// Whether it may be computed anywhere: it divides integers by positive constants alone, and converts no float to one.
// `may_load` says it of what it reads.
bool may_run_anywhere(const ir::Expr& e, function_ref<bool(const ir::Load&)> may_load);
// Whether an element's indices may be, whatever they read: a loop, a branch or a select is not waited for.
bool may_look_anywhere(const std::vector<ir::Expr>& indices);
// Whether an operation divides integers by what is no constant: by zero, as far as anybody knows who computes it for
// elements that the program has not.
bool may_divide_by_zero(const ir::Expr& e);
// How much it computes: the nodes that are no constants, names or loads.
int64_t work_of(const ir::Expr& e);

}  // namespace tilewright::analysis
