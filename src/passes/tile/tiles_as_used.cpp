#include "passes/tile/tiles_as_used.h"

#include "analysis/accessed.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/zero.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool is_plain(const Buffer& b) {
  return b.space == Space::Shared && b.strides.empty() && !b.cta && b.layout.kind == LayoutHint::None && !b.reducer &&
         !b.type.is_packed() && b.rank() > 0;
}

// ---- views

// The one view by which the tile is used, beside fills of all of it with zeros: all of its memory, from its first byte.
BufferId only_view(const ProgramTables& p, const Launch& launch, BufferId tile) {
  BufferId found;
  int uses = 0, clears = 0;
  for (BufferId id : used_buffers(launch.body)) {
    if (!p.buffer(id).is_view() || p.root(id) != tile) continue;
    if (found.valid()) return {};
    found = id;
  }
  if (!found.valid() || analysis::names_as_a_whole(launch.body, tile) || analysis::names_as_a_whole(launch.body, found))
    return {};
  walk(launch.body, [&](const Stmt& s) {
    for_each_region(s, [&](const Region& r) { uses += r.buffer == tile; });
    for_each_expr(s, [&](const Expr& e) {
      walk(e, [&](const Expr& x) { uses += x.as<Load>() && x.as<Load>()->buffer == tile; });
    });
    if (const auto* n = s.as<Store>()) uses += n->to.buffer == tile;
    if (const auto* n = s.as<Atomic>()) uses += n->to.buffer == tile;
    const auto* fill = s.as<Fill>();
    clears += fill && fill->to.buffer == tile && is_whole(fill->to, p.buffer(tile)) && is_zero(fill->value);
  });
  const Buffer &view = p.buffer(found), &whole = p.buffer(tile);
  const bool is_all = is_plain(view) && is_plain(whole) && (!view.offset || constant_int(view.offset) == 0) &&
                      bytes_on_chip(view) == bytes_on_chip(whole);
  return is_all && uses == clears ? found : BufferId{};
}

void become(TileProgram& p, Launch& launch, BufferId tile, BufferId view) {
  Buffer& b = p.buffers[view.index];
  b.root = {}, b.offset = {}, b.launch = p.buffer(tile).launch, b.panel = p.buffer(tile).panel;
  launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
    const auto* fill = s.as<Fill>();
    if (!fill || fill->to.buffer != tile) return std::nullopt;
    return Body{make_stmt(Fill{whole(view, p), constant(p.buffer(view).type, int64_t{0})}, s->location)};
  });
}

// ---- boxes

// The least extents that hold all accesses of a tile; none: something else is done with it, or it is not known.
class UsedBox {
 public:
  UsedBox(const ProgramTables& p, const Launch& launch, BufferId tile) : p_(p), tile_(tile) {
    extents_.resize(p.buffer(tile).rank());
    for (size_t d = 0; d < launch.thread.size(); ++d)
      ranges_.count(launch.thread[d], p.var(launch.thread[d]).type, constant(i32, launch.threads[d]));
    walk(launch.body, [&](const Stmt& s) { count(s); });
    walk(launch.body, [&](const Stmt& s) { visit(s); });
    walk_exprs(launch.body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>(); n && n->buffer == tile_) element(n->indices);
    });
    known_ = known_ && !analysis::names_as_a_whole(launch.body, tile);
  }
  std::optional<std::vector<int64_t>> extents() const {
    return known_ && multiplied_ ? std::optional(extents_) : std::nullopt;
  }

 private:
  void count(const Stmt& s) {
    if (const auto* n = s.as<For>(); n && constant_int(n->begin) == 0)
      ranges_.count(n->var, p_.var(n->var).type, n->extent);
    if (const auto* n = s.as<Map>())
      for (size_t d = 0; d < n->vars.size(); ++d) ranges_.count(n->vars[d], p_.var(n->vars[d]).type, n->extents[d]);
  }
  void visit(const Stmt& s) {
    if (const auto* n = s.as<Store>(); n && n->to.buffer == tile_) return element(n->to.indices);
    if (const auto* n = s.as<Atomic>(); n && n->to.buffer == tile_) return element(n->to.indices);
    const auto* gemm = s.as<Gemm>();
    const bool takes_boxes = gemm || s.as<Copy>() || s.as<Fill>() || s.as<Reduce>();
    for_each_region(s, [&](const Region& r) {
      if (r.buffer != tile_) return;
      known_ = known_ && takes_boxes;
      for (size_t d = 0; d < r.min.size(); ++d) reach(d, r.min[d], constant_int(r.extent[d]).value_or(kUnbounded));
    });
    multiplied_ = multiplied_ || (gemm && (gemm->a.buffer == tile_ || gemm->b.buffer == tile_));
  }
  void element(const std::vector<Expr>& indices) {
    for (size_t d = 0; d < indices.size(); ++d) reach(d, indices[d], 1);
  }
  // So many elements, from the first on.
  void reach(size_t d, const Expr& first, int64_t elements) {
    const Interval range = ranges_.of(first);
    const int64_t declared = constant_int(p_.buffer(tile_).shape[d]).value_or(0);
    known_ = known_ && range.low >= 0 && range.high <= declared && elements <= declared - range.high;
    if (known_) extents_[d] = std::max(extents_[d], range.high + elements);
  }

  const ProgramTables& p_;
  const BufferId tile_;
  Intervals ranges_;
  std::vector<int64_t> extents_;
  bool known_ = true, multiplied_ = false;
};

}  // namespace

TileProgram tiles_as_used(TileProgram program) {
  for (Launch& launch : program.launches)
    for (BufferId id : used_roots(launch.body, program)) {
      if (program.buffer(id).space != Space::Shared) continue;
      BufferId tile = id;
      if (const BufferId view = only_view(program, launch, id); view.valid())
        become(program, launch, id, view), tile = view;
      // By those, too, that nothing uses: they are declared over all of it.
      const bool viewed = std::ranges::any_of(program.buffers, [&](const Buffer& b) { return b.root == tile; });
      if (viewed || !is_plain(program.buffer(tile))) continue;
      const auto box = UsedBox(program, launch, tile).extents();
      if (!box || std::ranges::any_of(*box, [](int64_t n) { return n <= 0; })) continue;
      std::vector<Expr>& shape = program.buffers[tile.index].shape;
      for (size_t d = 0; d < box->size(); ++d) shape[d] = constant(shape[d]->type, (*box)[d]);
    }
  return program;
}

}  // namespace tilewright::passes
