#include "passes/fuse/panels.h"

#include "analysis/slope.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

size_t axis_of(const Buffer& b) { return static_cast<size_t>(b.tile->axis); }
bool has_panels(const Buffer& b) { return b.tile && b.tile->width > 0; }

// The dimension of A that is the rows of C.
size_t rows_of_a(const Gemm& g) { return g.transpose_a ? 1 : 0; }

// Into how many panels it may be cut; 0: into none. Where vectors go along columns, rows are few or nothing reduces
// them: panels then share the rows of A, which a product reads once.
int64_t panels_of(const Gemm& g, const ProgramTables& program) {
  const Buffer &c = program.buffer(g.c.buffer), &a = program.buffer(g.a.buffer);
  if (!has_panels(c) || c.tile->axis != 0 || !g.completion.immediate() || g.next.present() || g.is_sparse()) return 0;
  const int64_t width = c.tile->width, rows = c.tile->rows;
  const size_t dim = rows_of_a(g);
  const bool along = has_panels(a) && axis_of(a) == dim && a.tile->width == width;
  if (!along || rows % width != 0 || g.a.buffer == g.c.buffer) return 0;
  if (constant_int(g.c.extent[0]) != rows || constant_int(g.a.extent[dim]) != rows) return 0;
  return rows / width;
}

Region panel(const Region& region, size_t dim, const Expr& number, int64_t width) {
  Region out = region;
  out.min[dim] = sum({{width, number}}, 0, i64), out.extent[dim] = constant(i64, width);
  return out;
}

Gemm of_panel(const Gemm& g, const Expr& number, const ProgramTables& program) {
  const int64_t width = program.buffer(g.c.buffer).tile->width;
  Gemm out = g;
  out.a = panel(g.a, rows_of_a(g), number, width), out.c = panel(g.c, 0, number, width);
  return out;
}

// The products of the statement, if it is nothing else.
bool find_products(const Stmt& s, std::vector<const Gemm*>& found) {
  if (const auto* g = s.as<Gemm>()) return found.push_back(g), true;
  const auto* n = s.as<If>();
  bool only = n != nullptr;
  if (n) walk(n->condition, [&](const Expr& e) { only = only && !e.as<Load>() && !e.as<Address>(); });
  for (const Body* body : {n ? &n->then_body : nullptr, n ? &n->else_body : nullptr})
    only = only && body->size() == 1 && find_products(body->front(), found);
  return only;
}

}  // namespace

Expr panel_of(const Region& region, const Buffer& b) {
  if (!has_panels(b)) return {};
  const Expr& min = region.min[axis_of(b)];
  const int64_t width = b.tile->width;
  if (const auto c = constant_int(min)) return *c % width == 0 ? constant(i64, *c / width) : Expr();
  const auto* s = min.as<Sum>();
  if (!s || s->constant % width != 0) return {};
  std::vector<Term> terms;
  for (const Term& t : s->terms) {
    if (t.coefficient % width != 0) return {};
    terms.push_back({t.coefficient / width, t.value});
  }
  return sum(std::move(terms), s->constant / width, i64);
}

std::optional<Stmt> by_panels(const Stmt& s, ProgramTables& program) {
  std::vector<const Gemm*> products;
  if (!find_products(s, products)) return std::nullopt;
  const int64_t panels = panels_of(*products.front(), program);
  for (const Gemm* g : products)
    if (panels_of(*g, program) != panels) return std::nullopt;
  if (panels < 2) return std::nullopt;
  For loop;
  loop.var = program.new_var("panel", i64);
  loop.begin = constant(i64, int64_t{0}), loop.extent = constant(i64, panels);
  const Expr number = var(loop.var, i64);
  loop.body = rewrite({s}, [&](const Stmt& x) -> std::optional<Body> {
    const auto* g = x.as<Gemm>();
    return g ? std::optional(Body{make_stmt(of_panel(*g, number, program), x->location)}) : std::nullopt;
  });
  return make_stmt(std::move(loop), s->location);
}

int64_t panel_width(const For& loop, const ProgramTables& program) {
  int64_t width = 0;
  auto note = [&](BufferId id, const Expr& number) {
    const Buffer& b = program.buffer(id);
    const Var* v = number && has_panels(b) ? analysis::variable_of(number) : nullptr;
    if (v && v->id == loop.var) width = b.tile->width;
  };
  walk(loop.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>(); n && !n->to.indices.empty()) note(n->to.buffer, n->to.indices[0]);
    if (const auto* n = s.as<Gemm>()) note(n->c.buffer, panel_of(n->c, program.buffer(n->c.buffer)));
  });
  walk_exprs(loop.body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>(); n && !n->indices.empty()) note(n->buffer, n->indices[0]);
  });
  return width;
}

}  // namespace tilewright::passes
