#include "passes/tile/narrow_columns.h"

#include "analysis/columns.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

std::optional<Stmt> narrowed(ProgramTables& p, const Stmt& s, BufferId result, int64_t first, int64_t columns) {
  auto number = [&](const Expr& like) { return constant(like->type, columns); };
  if (const auto* n = s.as<Fill>()) {
    if (!is_whole(n->to, p.buffer(result))) return std::nullopt;
    Fill f = *n;
    f.to.extent.back() = number(f.to.extent.back());
    return make_stmt(std::move(f), s->location);
  }
  if (const auto* n = s.as<Copy>()) {
    if (n->from.buffer != result || !is_whole(n->from, p.buffer(result)) ||
        constant_int(n->to.extent.back()) != constant_int(n->from.extent.back()))
      return std::nullopt;
    Copy c = *n;
    Expr& begin = c.to.min.back();
    begin = add(begin, constant(begin->type, first));
    c.from.extent.back() = number(c.from.extent.back()), c.to.extent.back() = number(c.to.extent.back());
    return make_stmt(std::move(c), s->location);
  }
  const auto* n = s.as<Map>();
  const auto column = n ? analysis::column_of(p, *n, result) : std::nullopt;
  if (!column) return std::nullopt;
  Map m = *n;
  const DType type = p.var(m.vars[*column]).type;
  const VarId mine = p.new_var(p.var(m.vars[*column]).name, type);
  const Expr of_team = var(mine, type);
  auto moved = [&](std::vector<Expr> indices) {
    indices[1] = substitute(indices[1], {{n->vars[*column], of_team}});
    return indices;
  };
  m.body = rewrite_exprs(m.body, [&](const Expr& e) -> std::optional<Expr> {
    const auto* x = e.as<Load>();
    return x && x->buffer == result ? std::optional(load(result, moved(x->indices), e->type)) : std::nullopt;
  });
  m.body = rewrite(m.body, [&](const Stmt& x) -> std::optional<Body> {
    const auto* store = x.as<Store>();
    if (!store || store->to.buffer != result) return std::nullopt;
    return Body{make_stmt(Store{{result, moved(store->to.indices)}, store->value}, x->location)};
  });
  m.body = substitute(m.body, {{n->vars[*column], add(of_team, constant(type, first))}});
  m.vars[*column] = mine, m.extents[*column] = number(m.extents[*column]);
  return make_stmt(std::move(m), s->location);
}

}  // namespace tilewright::passes
