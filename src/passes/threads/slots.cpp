#include "passes/threads/slots.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

BufferId ring_of(ProgramTables& p, BufferId buffer, int64_t slots) {
  Buffer b = p.buffer(buffer);
  b.shape.insert(b.shape.begin(), constant(i32, slots));
  return p.new_buffer(std::move(b));
}

Region IntoSlots::region(Region r) const {
  auto found = slots_.find(r.buffer);
  if (found == slots_.end()) return r;
  r.buffer = found->second.ring;
  if (found->second.is_row) r.min.insert(r.min.begin(), constant(0)), r.extent.insert(r.extent.begin(), constant(1));
  r.min.insert(r.min.begin(), found->second.number), r.extent.insert(r.extent.begin(), constant(1));
  return r;
}

std::optional<Expr> IntoSlots::load_of(const Expr& e) const {
  const auto* n = e.as<Load>();
  const auto found = n ? slots_.find(n->buffer) : slots_.end();
  if (found == slots_.end()) return std::nullopt;
  std::vector<Expr> index = n->indices;
  if (found->second.is_row) index.insert(index.begin(), constant(0));
  index.insert(index.begin(), found->second.number);
  return load(found->second.ring, std::move(index), e->type);
}

std::optional<Body> IntoSlots::statement(const Stmt& s) const {
  auto with = [&](auto op) { return Body{make_stmt(std::move(op), s->location)}; };
  if (const auto* n = s.as<Copy>()) {
    Copy c = *n;
    c.from = region(c.from), c.to = region(c.to);
    return with(std::move(c));
  }
  if (const auto* n = s.as<Gemm>()) {
    Gemm g = *n;
    g.a = region(g.a), g.b = region(g.b), g.c = region(g.c);
    if (g.is_sparse()) g.metadata = region(g.metadata);
    return with(std::move(g));
  }
  if (const auto* n = s.as<Store>(); n && slots_.contains(n->to.buffer)) {
    const Slot& slot = slots_.at(n->to.buffer);
    Store st = *n;
    st.to.buffer = slot.ring, st.to.indices.insert(st.to.indices.begin(), slot.number);
    return with(std::move(st));
  }
  if (const auto* n = s.as<Reduce>()) {
    // The reduced dimension is counted from the region's first.
    Reduce r = *n;
    if (auto found = slots_.find(r.from.buffer); found != slots_.end()) r.dim += found->second.is_row ? 2 : 1;
    r.from = region(r.from);
    return with(std::move(r));
  }
  return std::nullopt;
}

Body IntoSlots::body(const Body& in) const {
  const Body with_loads = rewrite_exprs(in, [&](const Expr& e) { return load_of(e); });
  return rewrite(with_loads, [&](const Stmt& s) { return statement(s); });
}

}  // namespace tilewright::passes
