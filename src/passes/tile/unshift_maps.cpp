#include "passes/tile/unshift_maps.h"

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// A fragment of `extent` elements along a dimension that is read `distance` from a variable of the map.
struct Shift {
  Expr distance;
  int64_t extent = 0;
  BufferId fragment;
};

// Whether evaluating it reads the buffer, whatever the values are.
bool surely_reads(const Expr& e, BufferId buffer) {
  if (const auto* load = e.as<Load>(); load && load->buffer == buffer) return true;
  if (const auto* select = e.as<Select>()) return surely_reads(select->condition, buffer);
  if (const auto* b = e.as<Binary>(); b && (b->op == BinaryOp::And || b->op == BinaryOp::Or))
    return surely_reads(b->a, buffer);
  bool found = false;
  for_each_operand(e, [&](const Expr& part) { found = found || surely_reads(part, buffer); });
  return found;
}

// Whether all that the body does is to store what it reads from the buffer: then nothing happens where that is out of
// bounds.
bool only_stores_of(const Body& body, BufferId buffer) {
  return std::all_of(body.begin(), body.end(), [&](const Stmt& s) {
    if (const auto* branch = s.as<If>())
      return only_stores_of(branch->then_body, buffer) && only_stores_of(branch->else_body, buffer);
    const auto* store = s.as<Store>();
    return store && surely_reads(store->value, buffer);
  });
}

class Reads {
 public:
  Reads(const ProgramTables& p, const Map& map) : p_(p), map_(map), bound_(bound_vars(map.body)) {
    bound_.insert(map.vars.begin(), map.vars.end());
    walk_exprs(map.body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) access(n->buffer, n->indices);
    });
    walk(map.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) access(n->to.buffer, n->to.indices);
      if (const auto* n = s.as<Atomic>()) access(n->to.buffer, n->to.indices);
    });
  }
  // The one shift of a variable by which fragments are read in no other way.
  std::optional<Shift> shift(VarId v) const {
    const auto found = shifts_.find(v);
    return found == shifts_.end() || other_.contains(v) ? std::nullopt : std::optional(found->second);
  }

 private:
  void access(BufferId id, const std::vector<Expr>& index) {
    const Buffer& b = p_.buffer(id);
    if (b.space != Space::Fragment) return;
    for (size_t d = 0; d < index.size(); ++d)
      for (VarId v : map_.vars)
        if (used_vars(index[d]).contains(v)) along(v, sub(index[d], var(v, index[d]->type)), b.shape[d], id);
  }
  void along(VarId v, const Expr& distance, const Expr& extent, BufferId id) {
    const auto known = constant_int(extent);
    for (VarId used : used_vars(distance))
      if (bound_.contains(used)) other_.insert(v);
    const auto [at, first] = shifts_.try_emplace(v, Shift{distance, known.value_or(0), id});
    const bool same = equal(at->second.distance, distance) && at->second.fragment == id;
    if (constant_int(distance) == 0 || !known || !(first || same) || p_.buffer(id).is_view()) other_.insert(v);
  }

  const ProgramTables& p_;
  const Map& map_;
  std::set<VarId> bound_, other_;
  std::map<VarId, Shift> shifts_;
};

std::optional<Body> unshifted(TileProgram& p, const Stmt& s) {
  const auto* map = s.as<Map>();
  if (!map) return std::nullopt;
  const Reads reads(p, *map);
  for (size_t d = 0; d < map->vars.size(); ++d) {
    const auto shift = reads.shift(map->vars[d]);
    if (!shift || !only_stores_of(map->body, shift->fragment)) continue;
    Map out = *map;
    const DType type = map->extents[d]->type;
    if (shift->extent > constant_int(max_value(type)).value_or(INT64_MAX)) continue;
    out.vars[d] = p.new_var(p.var(map->vars[d]).name, type);
    const Expr place = sub(var(out.vars[d], type), cast(shift->distance, type));
    const Expr inside = logical_and(binary(BinaryOp::Le, constant(type, int64_t{0}), place),
                                    binary(BinaryOp::Lt, place, map->extents[d]));
    out.extents[d] = constant(type, shift->extent);
    out.body = {make_stmt(If{inside, substitute(map->body, {{map->vars[d], place}}), {}}, s->location)};
    return Body{make_stmt(std::move(out), s->location)};
  }
  return std::nullopt;
}

}  // namespace

TileProgram unshift_maps(TileProgram program) {
  for (Launch& launch : program.launches)
    launch.body = rewrite(launch.body, [&](const Stmt& s) { return unshifted(program, s); });
  return program;
}

}  // namespace tilewright::passes
