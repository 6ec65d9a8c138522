#include "passes/tile/sum_copies.h"

#include "analysis/accessed.h"
#include "ir/any_in.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "plan/loop_orders.h"

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

// The map's own points in order, all of the buffer.
bool is_all_of(const Element& e, const Map& map, const ProgramTables& p) {
  const Buffer& b = p.buffer(e.buffer);
  if (b.is_view() || b.rank() != map.vars.size()) return false;
  for (size_t d = 0; d < map.vars.size(); ++d) {
    const auto* v = e.indices[d].as<Var>();
    const auto extent = constant_int(map.extents[d]);
    if (!v || v->id != map.vars[d] || !extent || extent != constant_int(b.shape[d])) return false;
  }
  return true;
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
  if (from.space != Space::Fragment || !is_all_of({value->buffer, value->indices}, *map, p)) return std::nullopt;
  auto box = box_of(add->to, *map, p);
  if (!box) return std::nullopt;
  Copy out;
  out.from = whole(value->buffer, p);
  out.to = std::move(*box);
  out.combine = ir::Combine::Add;
  return Body{make_stmt(std::move(out), s->location)};
}

// The fragment that a Map makes its results of, element by element, which nothing behind it wants: they may be put
// there.
BufferId place_of(const Expr& result, const Map& map, const Body& behind, const ProgramTables& p) {
  std::set<BufferId> places, others;
  const auto look = [&](const Expr& e) {
    const auto* n = e.as<Load>();
    if (!n || p.buffer(p.root(n->buffer)).space != Space::Fragment) return;
    const bool fits = is_all_of({n->buffer, n->indices}, map, p) && p.buffer(n->buffer).type == result->type;
    (fits ? places : others).insert(p.root(n->buffer));
  };
  walk(result, look);
  walk_exprs(map.body, look);
  const std::set<BufferId> later = analysis::accessed_by(behind, p);
  for (BufferId id : places) {
    const Buffer& b = p.buffer(id);
    const bool viewed = std::ranges::any_of(p.buffers, [&](const Buffer& x) { return x.is_view() && x.root == id; });
    if (!others.contains(id) && !later.contains(id) && !viewed && !b.reducer && b.rank() == 2) return id;
  }
  return {};
}

// A Map that ends what a loop of products has made: its results in the fragment that they are made of, and a copy.
std::optional<Body> store_as_copy(const ProgramTables& p, const Stmt& s, const Body& behind) {
  const auto* map = s.as<Map>();
  const auto* store = map && !map->body.empty() ? map->body.back().as<Store>() : nullptr;
  if (!store || store->queue != Queue::None || p.buffer(p.root(store->to.buffer)).space != Space::Global)
    return std::nullopt;
  for (size_t i = 0; i + 1 < map->body.size(); ++i)
    if (!map->body[i].as<Let>()) return std::nullopt;
  const DType type = store->value->type;
  const auto* rounded = type == f32 ? nullptr : store->value.as<Cast>();
  const Expr result = rounded ? rounded->value : store->value;
  if (result->type != f32 || !type.is_float()) return std::nullopt;
  const BufferId id = place_of(result, *map, behind, p);
  auto box = id.valid() ? box_of(store->to, *map, p) : std::nullopt;
  if (!box) return std::nullopt;
  Body out;
  if (const auto* plain = result.as<Load>(); !plain || plain->buffer != id) {
    Map made = *map;
    std::vector<Expr> own;
    for (VarId v : map->vars) own.push_back(var(v, p.var(v).type));
    made.body.back() = make_stmt(Store{{id, std::move(own)}, result}, s->location);
    out.push_back(make_stmt(std::move(made), s->location));
  }
  Copy leave;
  leave.from = whole(id, p), leave.to = std::move(*box);
  out.push_back(make_stmt(std::move(leave), s->location));
  return out;
}

std::optional<Body> load_as_copy(const ProgramTables& p, const Stmt& s) {
  const auto* map = s.as<Map>();
  const auto* store = map && map->body.size() == 1 ? map->body[0].as<Store>() : nullptr;
  const auto* value = store ? store->value.as<Load>() : nullptr;
  if (!value || store->queue != Queue::None || p.buffer(store->to.buffer).space != Space::Shared) return std::nullopt;
  const Buffer& from = p.buffer(value->buffer);
  if (p.buffer(p.root(value->buffer)).space != Space::Global || from.fill || !is_all_of(store->to, *map, p))
    return std::nullopt;
  // Rows that are gathered are named before their loop (fetch_ahead), from the map.
  if (from.type.is_int() && map->vars.size() < 2) return std::nullopt;
  auto box = box_of({value->buffer, value->indices}, *map, p);
  if (!box) return std::nullopt;
  Copy out;
  out.from = std::move(*box);
  out.to = whole(store->to.buffer, p);
  return Body{make_stmt(std::move(out), s->location)};
}

}  // namespace

TileProgram loads_as_copies(TileProgram program) {
  for (Launch& launch : program.launches) {
    // A copy that no ring of a loader brings, as of what nobody reads, would keep it from bringing the others.
    const auto is_loaded = [&] {
      const analysis::FoundRings found = analysis::find_rings(program, launch);
      return found.left.empty() && plan::feed_gemms(program, launch, found.rings);
    };
    const bool loaded = is_loaded();
    const Body own = launch.body;
    launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* loop = s.as<For>();
      if (!loop || loop->kind != LoopKind::Pipelined) return std::nullopt;
      For f = *loop;
      bool changed = false;
      for (Stmt& inner : f.body)
        if (auto copy = load_as_copy(program, inner)) inner = copy->front(), changed = true;
      return changed ? std::optional(Body{make_stmt(std::move(f), s->location)}) : std::nullopt;
    });
    if (loaded && !is_loaded()) launch.body = own;
  }
  return program;
}

TileProgram stores_as_copies(TileProgram program) {
  for (Launch& launch : program.launches) {
    Body out;
    bool multiplied = false;
    for (size_t i = 0; i < launch.body.size(); ++i) {
      const Stmt& s = launch.body[i];
      const auto* loop = s.as<For>();
      multiplied = multiplied || (loop && loop->kind == LoopKind::Pipelined && holds<Gemm>(loop->body));
      const Body behind(launch.body.begin() + static_cast<std::ptrdiff_t>(i) + 1, launch.body.end());
      const auto copy = multiplied ? store_as_copy(program, s, behind) : std::nullopt;
      for (const Stmt& x : copy ? *copy : Body{s}) out.push_back(x);
    }
    launch.body = std::move(out);
  }
  return program;
}

TileProgram sums_as_copies(TileProgram program) {
  for (Launch& launch : program.launches)
    launch.body = rewrite(launch.body, [&](const Stmt& s) { return as_copy(program, s); });
  return program;
}

}  // namespace tilewright::passes
