#include "analysis/accessed.h"

#include "analysis/body_order.h"
#include "analysis/slope.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

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

struct WholeBuffers {
  BufferId id;
  bool found = false;
  void operator()(const char*, const auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, BufferId>) found = found || field == id;
  }
};

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

int accesses_of(const Body& body, BufferId owner, const ProgramTables& program) {
  int count = 0;
  walk(body, [&](const Stmt& s) {
    for (const Effect& e : effects_of(s).list) count += e.region.valid() && program.root(e.region.buffer) == owner;
  });
  return count;
}

bool changes_elsewhere(const Launch& launch, const Body& here, BufferId id, const ProgramTables& program) {
  const BufferId root = program.root(id);
  const auto changes = [&](const Body& body) {
    int count = 0;
    walk(body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list)
        count += e.region.valid() && e.access != Access::Read && e.access != Access::Order &&
                 may_overlap(program.root(e.region.buffer), root, program);
    });
    return count;
  };
  return program.buffer(root).space == Space::Global && changes(launch.body) > changes(here);
}

bool meet(const Buffers& a, const Buffers& b, const ProgramTables& program) {
  return std::ranges::any_of(a, [&](BufferId id) { return may_overlap(id, b, program); });
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
  if (const auto* n = s.as<Gemm>()) return constant_int(n->clear) == 1 && n->c.buffer == id && is_whole(n->c, b);
  const auto* n = s.as<Map>();
  return n && std::any_of(n->body.begin(), n->body.end(), [&](const Stmt& x) {
           const auto* store = x.as<Store>();
           const auto at = store && store->to.buffer == id ? followed(store->to.indices, n->vars) : std::nullopt;
           return at && at->is_whole(constants(n->extents), constants(b.shape));
         });
}

bool names_as_a_whole(const Body& body, BufferId id) {
  WholeBuffers whole{id};
  walk(body, [&](const Stmt& s) {
    match(s->op, [&](const auto& node) { std::decay_t<decltype(node)>::fields(node, whole); });
  });
  walk_exprs(body, [&](const Expr& e) {
    const auto* n = e.as<Address>();
    whole.found = whole.found || (n && n->buffer == id);
  });
  return whole.found;
}

std::optional<Followed> followed(const std::vector<Expr>& indices, const std::vector<VarId>& vars) {
  Followed out;
  for (const Expr& e : indices) {
    const auto* sum = e.as<ir::Sum>();
    if (sum && (sum->terms.size() != 1 || sum->terms[0].coefficient != 1)) return std::nullopt;
    const Expr& varying = sum ? sum->terms[0].value : e;
    int64_t first = sum ? sum->constant : 0;
    const Var* v = variable_of(varying);
    int dim = -1;
    if (v) {
      const auto at = std::find(vars.begin(), vars.end(), v->id);
      if (at == vars.end()) return std::nullopt;
      dim = static_cast<int>(at - vars.begin());
      if (std::find(out.dims.begin(), out.dims.end(), dim) != out.dims.end()) return std::nullopt;
    } else if (const auto known = constant_int(e)) {
      first = *known;
    } else {
      return std::nullopt;
    }
    out.dims.push_back(dim), out.first.push_back(first);
  }
  return out;
}

bool Followed::is_whole(const std::vector<int64_t>& points, const std::vector<int64_t>& shape) const {
  for (size_t d = 0; d < dims.size(); ++d)
    if (first[d] != 0 || shape[d] != (dims[d] < 0 ? 1 : points[static_cast<size_t>(dims[d])])) return false;
  return true;
}

}  // namespace tilewright::analysis
