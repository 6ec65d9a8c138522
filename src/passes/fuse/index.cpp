#include "passes/fuse/index.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

Body with_index(const For& f, const Expr& index, const ProgramTables& program) {
  if (const auto* v = index.as<Var>(); v && v->id == f.var) return f.body;
  const DType own = program.var(f.var).type;
  return rewrite_exprs(f.body, [&](const Expr& e) -> std::optional<Expr> {
    if (const auto* n = e.as<Var>(); n && n->id == f.var) return cast(index, own);
    // Narrowing an index to the variable's type and widening it again gives the index itself.
    const auto* outer = e.as<Cast>();
    const auto* inner = outer && e->type == index->type ? outer->value.as<Cast>() : nullptr;
    return inner && equal(inner->value, index) ? std::optional(index) : std::nullopt;
  });
}

}  // namespace tilewright::passes
