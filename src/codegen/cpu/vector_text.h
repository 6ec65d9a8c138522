// Joins of two operands (ir/joins.h) as text for vectors of the host compiler.
#pragma once
#include "ir/expr.h"

namespace tilewright::codegen {

// The expression with `a` and `b` for the two operands, vectors of type V; I is what comparing two of them gives.
std::string vector_text(const ir::Expr& e, const ir::Expr& a, const ir::Expr& b);

}  // namespace tilewright::codegen
