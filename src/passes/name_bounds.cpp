#include "passes/name_bounds.h"

#include "analysis/body_order.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

void name_changing_bounds(TileProgram& program, Launch& launch) {
  const auto named = [&](const Stmt& s, const Body& body, Expr& bound, const char* name, Body& out) {
    bool loads = false;
    walk(bound, [&](const Expr& e) { loads = loads || e.as<Load>(); });
    if (!loads) return;
    const std::set<BufferId> changed = changed_roots(body, program);
    const bool of_turns = s.as<For>() || s.as<Map>();
    bool changes = false;
    walk(bound, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      const bool anywhere = of_turns && n && program.buffer(program.root(n->buffer)).address;
      changes = changes || anywhere || (n && analysis::may_overlap(n->buffer, changed, program));
    });
    if (!changes) return;
    const VarId v = program.new_var(name, bound->type);
    out.push_back(make_stmt(Let{v, bound}, s->location));
    bound = var(v, bound->type);
  };
  launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
    Body out;
    if (const auto* n = s.as<For>()) {
      For f = *n;
      named(s, n->body, f.begin, "begin", out), named(s, n->body, f.extent, "extent", out);
      if (!out.empty()) out.push_back(make_stmt(std::move(f), s->location));
    } else if (const auto* n = s.as<Map>()) {
      Map m = *n;
      for (Expr& e : m.extents) named(s, n->body, e, "extent", out);
      if (!out.empty()) out.push_back(make_stmt(std::move(m), s->location));
    } else if (is_tile_op(s)) {
      const Stmt told = with_exprs(s, [&](Expr e) {
        named(s, {s}, e, "operand", out);
        return e;
      });
      if (!out.empty()) out.push_back(told);
    }
    return out.empty() ? std::nullopt : std::optional(std::move(out));
  });
}

}  // namespace tilewright::passes
