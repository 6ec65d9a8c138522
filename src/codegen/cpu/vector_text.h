// Expressions of two operands as text for vectors of the host compiler.
#pragma once
#include "ir/expr.h"

namespace tilewright::codegen {

// The expression with `a` and `b` for the two operands, vectors of type V; I is what comparing two of them gives. Empty
// if it has anything else than the operands and what vectors have operators for.
std::optional<std::string> vector_text(const ir::Expr& e, const ir::Expr& a, const ir::Expr& b);

}  // namespace tilewright::codegen
