#include "passes/threads/accessed.h"

#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/rewrite.h"
#include "passes/threads/placement.h"

namespace tilewright::passes {

using namespace ir;

namespace {

template <class Counts>
Buffers collect(const Body& body, const ProgramTables& program, const Counts& counts) {
  Buffers out;
  walk(body, [&](const Stmt& s) {
    for (const Effect& e : effects_of(s).list)
      if (e.region.valid() && e.access != Access::Order && counts(e.access)) out.insert(program.root(e.region.buffer));
  });
  return out;
}

}  // namespace

Buffers read_by(const Body& body, const ProgramTables& program) {
  return collect(body, program, [](Access a) { return a != Access::Write; });
}
Buffers written_by(const Body& body, const ProgramTables& program) {
  return collect(body, program, [](Access a) { return a != Access::Read; });
}
Buffers accessed_by(const Body& body, const ProgramTables& program) {
  return collect(body, program, [](Access) { return true; });
}

bool meet(const Buffers& a, const Buffers& b) {
  return std::any_of(a.begin(), a.end(), [&](BufferId id) { return b.contains(id); });
}

std::vector<int64_t> constants(const std::vector<Expr>& extents) {
  std::vector<int64_t> out;
  for (const Expr& e : extents) out.push_back(constant_int(e).value_or(0));
  return out;
}

bool writes_whole(const Stmt& s, BufferId id, const ProgramTables& program) {
  const Buffer& b = program.buffer(id);
  if (const auto* n = s.as<Fill>()) return n->to.buffer == id && is_whole(n->to, b);
  if (const auto* n = s.as<Copy>()) return n->to.buffer == id && is_whole(n->to, b) && n->combine == ir::Combine::None;
  if (const auto* n = s.as<Reduce>()) return n->clear && n->to.buffer == id && is_whole(n->to, b);
  const auto* n = s.as<Map>();
  return n && std::any_of(n->body.begin(), n->body.end(), [&](const Stmt& x) {
           const auto* store = x.as<Store>();
           const auto at = store && store->to.buffer == id ? followed(store->to.indices, n->vars) : std::nullopt;
           return at && at->is_whole(constants(n->extents), constants(b.shape));
         });
}

}  // namespace tilewright::passes
