#include "passes/fuse/index.h"

#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

Body with_index(const For& f, const Expr& index, const ProgramTables& program) {
  if (const auto* v = index.as<Var>(); v && v->id == f.var) return f.body;
  const DType own = program.var(f.var).type;
  return rewrite_exprs(f.body, [&](const Expr& e) -> std::optional<Expr> {
    if (const auto* n = e.as<Var>(); n && n->id == f.var) return cast(index, own);
    // Narrowing an index to the variable's type and widening it again gives the index itself; to another type it wraps.
    const auto* outer = e.as<Cast>();
    const bool widens = outer && e->type == index->type && analysis::holds_indices(outer->value->type, own);
    const auto* inner = widens ? outer->value.as<Cast>() : nullptr;
    return inner && equal(inner->value, index) ? std::optional(index) : std::nullopt;
  });
}

bool mentions(const Stmt& s, BufferId id) { return used_buffers({s}).contains(id); }

bool sweeps(const Expr& index, int64_t extent, const Nest& nest) {
  if (extent == 1) return constant_int(index) == 0;
  std::vector<Term> terms{{1, index}};
  if (const Sum* s = analysis::sum_of(index)) {
    if (s->constant != 0) return false;
    terms = s->terms;
  }
  std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.coefficient < b.coefficient; });
  int64_t step = 1;
  for (const Term& t : terms) {
    const Var* v = analysis::variable_of(t.value);
    const auto at = std::find_if(nest.begin(), nest.end(), [&](const For* f) { return v && f->var == v->id; });
    if (at == nest.end() || t.coefficient != step || constant_int((*at)->begin) != 0) return false;
    step *= constant_int((*at)->extent).value_or(0);
  }
  return step == extent;
}

bool is_tile_of_elements(BufferId id, const Body& block, const ProgramTables& program) {
  const Buffer& b = program.buffer(id);
  if (b.is_view() || b.tile || b.rank() == 0 || b.type.is_packed()) return false;
  if (b.space != Space::Shared && b.space != Space::Fragment) return false;
  for (const Buffer& other : program.buffers)
    if (other.is_view() && other.root == id) return false;
  for (const Expr& e : b.shape)
    if (!constant_int(e)) return false;
  bool plain = true;
  walk(block, [&](const Stmt& s) {
    if (s.as<Gemm>() || s.as<Print>() || s.as<Call>()) plain = plain && !mentions(s, id);
    if (const auto* n = s.as<Atomic>()) plain = plain && n->to.buffer != id;
  });
  walk_exprs(block, [&](const Expr& e) {
    const auto* n = e.as<Address>();
    plain = plain && !(n && n->buffer == id);
  });
  return plain;
}

}  // namespace tilewright::passes
