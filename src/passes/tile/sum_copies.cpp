#include "passes/tile/sum_copies.h"

#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool mentions_any(const Expr& e, const std::vector<VarId>& vars) {
  const std::set<VarId> used = used_vars(e);
  return std::any_of(vars.begin(), vars.end(), [&](VarId v) { return used.contains(v); });
}

// The region that the elements fill, if those along each variable follow each other and their order is the variables'.
std::optional<Region> box_of(const Element& to, const Map& map, const ProgramTables& p) {
  Region out{to.buffer, {}, {}};
  size_t next = 0;
  for (const Expr& index : to.indices) {
    if (!mentions_any(index, map.vars)) {
      out.min.push_back(index), out.extent.push_back(constant(index->type, int64_t{1}));
      continue;
    }
    if (next == map.vars.size()) return std::nullopt;
    const Expr first = sub(index, cast(var(map.vars[next], p.var(map.vars[next]).type), index->type));
    if (mentions_any(first, map.vars)) return std::nullopt;
    out.min.push_back(first), out.extent.push_back(cast(map.extents[next++], index->type));
  }
  return next == map.vars.size() ? std::optional(out) : std::nullopt;
}

std::optional<Body> as_copy(const ProgramTables& p, const Stmt& s) {
  const auto* map = s.as<Map>();
  const auto* add = map && map->body.size() == 1 ? map->body[0].as<Atomic>() : nullptr;
  if (!add || add->op != AtomicOp::Add || add->result.valid() || add->order != MemoryOrder::Relaxed)
    return std::nullopt;
  const auto* value = add->value.as<Load>();
  const Buffer& to = p.buffer(add->to.buffer);
  if (!value || to.space != Space::Global || to.reducer || to.type != add->value->type) return std::nullopt;
  const Buffer& from = p.buffer(value->buffer);
  if (from.space != Space::Fragment || from.is_view() || from.rank() != map->vars.size()) return std::nullopt;
  for (size_t d = 0; d < map->vars.size(); ++d) {
    const auto* v = value->indices[d].as<Var>();
    if (!v || v->id != map->vars[d] || constant_int(map->extents[d]) != constant_int(from.shape[d]))
      return std::nullopt;
  }
  auto box = box_of(add->to, *map, p);
  if (!box) return std::nullopt;
  Copy out;
  out.from = {value->buffer, std::vector<Expr>(from.rank(), constant(0)), from.shape};
  out.to = std::move(*box);
  out.combine = ir::Combine::Add;
  return Body{make_stmt(std::move(out), s->location)};
}

}  // namespace

TileProgram sums_as_copies(TileProgram program) {
  for (Launch& launch : program.launches)
    launch.body = rewrite(launch.body, [&](const Stmt& s) { return as_copy(program, s); });
  return program;
}

}  // namespace tilewright::passes
