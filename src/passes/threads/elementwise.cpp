#include "passes/threads/elementwise.h"

#include "analysis/im2col.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/widen.h"
#include "passes/threads/collectives.h"
#include "passes/tile/neighbours_last.h"

namespace tilewright::passes {

using namespace ir;
using analysis::im2col_element;

namespace {

constexpr int64_t kMostUnrolled = 256;  // rounds: as many elements as a thread has registers

// The box of a region: a variable for every extent other than 1.
class Box {
 public:
  Box(const Region& region, ProgramTables& p) {
    static constexpr const char* kNames[] = {"i", "j", "k", "m", "n", "p"};
    for (const Expr& extent : region.extent) {
      if (constant_int(extent) == 1) continue;
      map.vars.push_back(p.new_var(kNames[std::min<size_t>(map.vars.size(), 5)], i32));
      map.extents.push_back(cast(extent, i32));
    }
    if (map.vars.empty()) {  // a Map has at least one point and one variable
      map.vars.push_back(p.new_var("i", i32));
      map.extents.push_back(constant(1));
    }
  }
  std::vector<Expr> indices(const Region& r) const {
    std::vector<Expr> out;
    size_t at = 0;
    for (size_t d = 0; d < r.min.size(); ++d) {
      out.push_back(constant_int(r.extent[d]) == 1 ? r.min[d] : offset_by(r.min[d], var(at++)));
    }
    return out;
  }
  // Where in the region, by dimension.
  std::vector<Expr> point(const Region& r) const {
    std::vector<Expr> out;
    size_t at = 0;
    for (const Expr& extent : r.extent) out.push_back(constant_int(extent) == 1 ? constant(0) : var(at++));
    return out;
  }
  Expr var(size_t d) const { return ir::var(map.vars[d], i32); }
  Map map;
};

Map map_of(const Fill& fill, LocationId at, ProgramTables& p) {
  Box box(fill.to, p);
  box.map.body = {make_stmt(Store{{fill.to.buffer, box.indices(fill.to)}, fill.value}, at)};
  return std::move(box.map);
}

// The points of a Map one after the other; neighbours of the innermost dimension may be moved at once.
Stmt serial(Map map, LocationId at, LoopKind innermost) {
  Body body = std::move(map.body);
  for (size_t d = map.vars.size(); d-- > 0;) {
    For loop;
    loop.var = map.vars[d], loop.begin = constant(0), loop.extent = map.extents[d];
    // An array stays in registers where its places are known; a long one would not anyway.
    const auto extent = constant_int(loop.extent);
    const LoopKind kind = d + 1 == map.vars.size() ? innermost : LoopKind::Unroll;
    loop.kind = extent && *extent <= kMostUnrolled ? kind : LoopKind::Serial;
    loop.body = std::move(body);
    body = {make_stmt(std::move(loop), at)};
  }
  return body[0];
}

}  // namespace

Map map_of(const Copy& copy, ProgramTables& p, LocationId at) {
  Box box(copy.to, p);
  const Buffer& from = p.buffer(copy.from.buffer);
  std::vector<Expr> source;
  if (copy.im2col.present()) {
    source = im2col_element(copy, from.shape, box.point(copy.to));
  } else {
    source = box.indices(copy.from);
  }
  const DType type = p.buffer(copy.to.buffer).type;
  const Expr value = cast(load(copy.from.buffer, std::move(source), from.type), type);
  const Element to{copy.to.buffer, box.indices(copy.to)};
  if (copy.combine == ir::Combine::None) {
    box.map.body = {make_stmt(Store{to, value}, at)};
  } else {
    Atomic a;
    a.op = atomic_op_of(copy.combine), a.to = to, a.value = value;
    box.map.body = {make_stmt(std::move(a), at)};
  }
  return std::move(box.map);
}

std::optional<Stmt> own_loops(const Stmt& s, ProgramTables& p) {
  const auto is_own = [&](const Region& r) { return p.buffer(p.root(r.buffer)).space == Space::Local; };
  if (const auto* n = s.as<Copy>(); n && n->completion.immediate() && (is_own(n->from) || is_own(n->to)))
    return serial(map_of(*n, p, s->location), s->location,
                  n->combine == ir::Combine::None ? LoopKind::Vectorized : LoopKind::Unroll);
  if (const auto* n = s.as<Fill>(); n && is_own(n->to))
    return serial(map_of(*n, s->location, p), s->location, LoopKind::Unroll);
  return std::nullopt;
}

Body copies_to_maps(const Body& body, ProgramTables& p) {
  const Body maps = rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
    if (auto own = own_loops(s, p)) return Body{std::move(*own)};
    if (const auto* n = s.as<Copy>(); n && n->completion.immediate())
      return Body{make_stmt(map_of(*n, p, s->location), s->location)};
    if (const auto* n = s.as<Fill>()) return Body{make_stmt(map_of(*n, s->location, p), s->location)};
    return std::nullopt;
  });
  return with_neighbours_last(maps, p);
}

template <>
Body lower_for_thread(const Fill&, const Stmt&, const Team&, CollectiveLowering&) {
  fail_internal("a fill that has not become a map", __FILE__, __LINE__);
}

TileProgram copies_to_maps(TileProgram program) {
  for (Launch& launch : program.launches) launch.body = copies_to_maps(launch.body, program);
  return program;
}

}  // namespace tilewright::passes
