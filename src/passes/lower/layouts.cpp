#include "passes/lower/layouts.h"

#include "analysis/slope.h"
#include "ir/extent.h"

#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// A gemm operand that is a whole two-dimensional tile on the chip.
bool is_whole_tile(const Region& r, const Lowering& l) {
  const Buffer& b = l.buffer(r.buffer);
  if (b.space != Space::Shared && b.space != Space::Fragment) return false;
  return !b.is_view() && b.rank() == 2 && !b.reducer && is_whole(r, b);
}

target::GemmShape shape_of(const Gemm& g, const Lowering& l) {
  auto extent = [](const Region& r, size_t from_end) {
    return constant_int(r.extent[r.extent.size() - from_end]).value_or(1);
  };
  return {extent(g.c, 2),
          extent(g.c, 1),
          g.transpose_a ? extent(g.a, 2) : extent(g.a, 1),
          l.buffer(g.a.buffer).type,
          l.buffer(g.b.buffer).type,
          l.buffer(g.c.buffer).type,
          g.transpose_a,
          g.transpose_b};
}

// Buffers that something reads as plain memory: all that finds elements otherwise is named here.
std::set<BufferId> fixed_buffers(const Lowering& l) {
  std::set<BufferId> out;
  for (const Buffer& b : l.program.buffers)
    if (b.is_view()) out.insert(b.root);
  walk(l.launch.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Print>()) out.insert(n->buffer);
    if (const auto* n = s.as<Atomic>()) out.insert(n->to.buffer);
    const auto* copy = s.as<Copy>();
    const auto* reduce = s.as<Reduce>();
    if (s.as<Fill>() || s.as<Gemm>() || (copy && copy->combine == Combine::None && !copy->im2col.present())) return;
    for_each_region(s, [&](const Region& r) {
      if (!reduce || &r == &reduce->to) out.insert(r.buffer);
    });
  });
  walk_exprs(l.launch.body, [&](const Expr& e) {
    if (const auto* n = e.as<Address>()) out.insert(n->buffer);
  });
  return out;
}

TileLayout layout_of(const Buffer& b, const target::OperandTile& t) {
  TileLayout out;
  out.rows = *constant_int(b.shape[0]), out.columns = *constant_int(b.shape[1]);
  out.axis = t.axis, out.width = t.width, out.interleave = t.interleave, out.element = b.type;
  return out;
}

constexpr int64_t kFewRows = 16;  // half an AVX-512 panel

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void choose_tiles(Lowering& l) {
  if (!l.target.preferred_tiles) return;
  std::vector<const Gemm*> gemms;
  std::set<BufferId> reduced;
  walk(l.launch.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Gemm>()) gemms.push_back(n);
    if (const auto* n = s.as<Reduce>(); n && n->dim == 1) reduced.insert(n->from.buffer);
  });
  // Rows that are reduced want to lie across the vectors; tiles flow from gemm to gemm, so one answer for all.
  // With few rows most lanes would hold nothing.
  const bool along_rows = std::any_of(gemms.begin(), gemms.end(), [&](const Gemm* g) {
    return reduced.contains(g->c.buffer) && shape_of(*g, l).m >= kFewRows;
  });
  std::set<BufferId> fixed = fixed_buffers(l);
  std::map<BufferId, target::OperandTile> wishes;
  for (const Gemm* g : gemms) {
    const target::GemmTiles tiles = l.target.preferred_tiles(shape_of(*g, l), along_rows, l.target.features);
    const std::pair<const Region*, const target::OperandTile*> operands[] = {
        {&g->a, &tiles.a}, {&g->b, &tiles.b}, {&g->c, &tiles.c}};
    for (const auto& [region, tile] : operands) {
      const auto [at, fresh] = wishes.try_emplace(region->buffer, *tile);
      if (!is_whole_tile(*region, l) || (!fresh && !(at->second == *tile))) fixed.insert(region->buffer);
    }
  }
  for (const auto& [id, tile] : wishes) {
    if (fixed.contains(id)) continue;
    Buffer& b = l.program.buffers[id.index];
    if (tile.stored.is_packed() || b.type.is_packed()) continue;
    b.tile = layout_of(b, tile);
    if (tile.width == 0) {
      b.shape[1] = constant(std::max(tile.row_stride, b.tile->columns));
    } else {
      const int64_t along = tile.axis == 0 ? b.tile->rows : b.tile->columns;
      const int64_t across = tile.axis == 0 ? b.tile->columns : b.tile->rows;
      b.shape = {constant(ceil_div(along, tile.width)), constant(ceil_div(across, tile.interleave)),
                 constant(tile.width), constant(tile.interleave)};
    }
    b.type = tile.stored;
  }
}

namespace {

// e = quotient * by + rest. The parts of a sum that the divisor divides go to the quotient; the rest must be small.
std::pair<Expr, Expr> divided(const Expr& e, int64_t by, const Lowering& l) {
  if (by == 1) return {e, wide(0)};
  std::vector<Term> terms{{1, e}}, multiples, others;
  int64_t total = 0;
  if (const auto* s = e.as<Sum>()) terms = s->terms, total = s->constant;
  if (auto c = constant_int(e)) terms.clear(), total = *c;
  for (const Term& t : terms) {
    if (t.coefficient % by == 0)
      multiples.push_back({t.coefficient / by, t.value});
    else
      others.push_back(t);
  }
  const int64_t left = ((total % by) + by) % by;
  const Expr rest = sum(others, left, i64);
  const Interval range = l.intervals.of(rest);
  if (range.low >= 0 && range.high < by) return {sum(multiples, (total - left) / by, i64), rest};
  return {binary(BinaryOp::FloorDiv, e, wide(by)), binary(BinaryOp::FloorMod, e, wide(by))};
}

std::vector<Expr> placed(const TileLayout& t, const std::vector<Expr>& index, const Lowering& l) {
  if (t.width == 0) return index;
  const auto [panel, lane] = divided(index[static_cast<size_t>(t.axis)], t.width, l);
  const auto [group, part] = divided(index[static_cast<size_t>(1 - t.axis)], t.interleave, l);
  return {panel, group, lane, part};
}

}  // namespace

Body place_tiles(const Body& body, Lowering& l) {
  Body out = rewrite_exprs(body, [&](const Expr& e) -> std::optional<Expr> {
    const auto* n = e.as<Load>();
    if (!n || !l.buffer(n->buffer).tile) return std::nullopt;
    const Buffer& b = l.buffer(n->buffer);
    return cast(load(n->buffer, placed(*b.tile, n->indices, l), b.type), e->type);
  });
  return rewrite(out, [&](const Stmt& s) -> std::optional<Body> {
    const auto* n = s.as<Store>();
    if (!n || !l.buffer(n->to.buffer).tile) return std::nullopt;
    const Buffer& b = l.buffer(n->to.buffer);
    return Body{
        make_stmt(Store{{n->to.buffer, placed(*b.tile, n->to.indices, l)}, cast(n->value, b.type)}, s->location)};
  });
}

bool touches_panels(const Body& body, const Lowering& l) {
  for (BufferId id : used_buffers(body))
    if (const auto& t = l.buffer(id).tile; t && t->width > 0) return true;
  return false;
}

namespace {

// Which variables to cut, and into pieces of what size.
class Cuts {
 public:
  Cuts(const std::vector<Expr>& vars, const std::vector<Expr>& extents, const Body& body, Lowering& l)
      : vars_(vars), extents_(extents), widths_(vars.size(), 0), groups_(vars.size(), 1), l_(l) {
    walk(body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) access(n->to.buffer, n->to.indices);
    });
    walk_exprs(body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) access(n->buffer, n->indices);
    });
  }
  int64_t width(size_t d) const { return widths_[d] > 0 ? widths_[d] : 0; }
  int64_t group(size_t d) const { return widths_[d] == 0 ? groups_[d] : 1; }

 private:
  void access(BufferId id, const std::vector<Expr>& index) {
    const auto& t = l_.buffer(id).tile;
    if (!t || t->width == 0) return;
    if (const auto d = along(index[static_cast<size_t>(t->axis)], t->width))
      widths_[*d] = std::max(widths_[*d], t->width);
    if (t->interleave > 1)
      if (const auto d = along(index[static_cast<size_t>(1 - t->axis)], t->interleave)) groups_[*d] = t->interleave;
  }
  // The box variable that the index follows one by one, if pieces of this size divide its extent.
  std::optional<size_t> along(const Expr& index, int64_t size) const {
    for (size_t d = 0; d < vars_.size(); ++d) {
      const auto extent = constant_int(extents_[d]);
      if (!extent || *extent % size != 0) continue;
      if (follows(index, id_of(vars_[d]))) return d;
    }
    return std::nullopt;
  }
  // index = var + what does not depend on it
  static bool follows(const Expr& index, VarId var) {
    std::vector<Term> terms{{1, index}};
    if (const auto* s = index.as<Sum>()) terms = s->terms;
    bool found = false;
    for (const Term& t : terms) {
      const Var* v = analysis::variable_of(t.value);
      if (v && v->id == var && t.coefficient == 1)
        found = true;
      else if (used_vars(t.value).contains(var))
        return false;
    }
    return found;
  }

  const std::vector<Expr>& vars_;
  const std::vector<Expr>& extents_;
  std::vector<int64_t> widths_, groups_;
  Lowering& l_;
};

// var := value (int64), also where the body widens the variable.
std::optional<Expr> replacement(const Expr& e, const std::map<VarId, Expr>& map, const ProgramTables& program) {
  if (const auto* v = e.as<Var>()) {
    auto found = map.find(v->id);
    return found == map.end() ? std::nullopt : std::optional<Expr>(cast(found->second, e->type));
  }
  // A box variable is small: widening it again gives the value itself.
  const auto* c = e.as<Cast>();
  const auto* inner = c && e->type == i64 ? c->value.as<Cast>() : nullptr;
  if (!inner || inner->value->type != i64) return std::nullopt;
  for (const auto& [id, value] : map)
    if (analysis::holds_indices(c->value->type, program.var(id).type) && equal(value, inner->value)) return value;
  return std::nullopt;
}

}  // namespace

CutBox cut_to_panels(const std::vector<Expr>& vars, const std::vector<Expr>& extents, const Body& body, Lowering& l) {
  const Cuts cuts(vars, extents, body, l);
  CutBox out;
  std::vector<Expr> lanes, lane_extents, parts, part_extents;
  std::map<VarId, Expr> map;
  for (size_t d = 0; d < vars.size(); ++d) {
    const int64_t size = cuts.width(d) > 0 ? cuts.width(d) : cuts.group(d);
    const VarInfo info = l.program.var(id_of(vars[d]));
    if (size == 1) {
      // Another one: the same box may have a nest without panels too.
      const Expr same = var(l.program.new_var(info.name, info.type), info.type);
      l.intervals.set(id_of(same), l.intervals.of(vars[d]));
      map[id_of(vars[d])] = same;
      out.vars.push_back(same), out.extents.push_back(extents[d]);
      continue;
    }
    const Expr count = wide(*constant_int(extents[d]) / size);
    const Expr outer = l.index(info.name + (cuts.width(d) ? "_panel" : "_group"), count);
    const Expr inner = l.index(info.name + (cuts.width(d) ? "_lane" : "_part"), wide(size));
    map[id_of(vars[d])] = sum({{size, outer}, {1, inner}}, 0, i64);
    // Panels are the outermost loops: a panel stays in the nearest cache.
    const size_t at = cuts.width(d) ? 0 : out.vars.size();
    out.vars.insert(out.vars.begin() + static_cast<long>(at), outer);
    out.extents.insert(out.extents.begin() + static_cast<long>(at), count);
    (cuts.width(d) ? lanes : parts).push_back(inner);
    (cuts.width(d) ? lane_extents : part_extents).push_back(wide(size));
  }
  if (lanes.empty()) return {vars, extents, 0, 0, body};
  const auto replaced = [&](const Expr& e) { return replacement(e, map, l.program); };
  out.lanes = lanes.size(), out.parts = parts.size();
  out.vars.insert(out.vars.end(), lanes.begin(), lanes.end());
  out.extents.insert(out.extents.end(), lane_extents.begin(), lane_extents.end());
  out.vars.insert(out.vars.end(), parts.begin(), parts.end());
  out.extents.insert(out.extents.end(), part_extents.begin(), part_extents.end());
  out.body = rewrite_exprs(body, replaced);
  if (auto old = l.boxes.of.find(id_of(vars[0])); old != l.boxes.of.end()) {
    const size_t nest = l.boxes.add(rewrite(l.boxes.thread[old->second], replaced), l.boxes.box[old->second]);
    for (const Expr& v : out.vars) l.boxes.of[id_of(v)] = nest;
  }
  return out;
}

namespace {

constexpr int64_t kLine = 64;  // bytes

// Does the index run along memory with the variable: by 1, or by the size of a group with its part?
bool runs_along(const Buffer& b, const std::vector<Expr>& index, VarId var, VarId lane, int64_t part) {
  if (index.empty() || (!b.strides.empty() && constant_int(b.strides.back()) != 1)) return false;
  bool along = false, across = false;
  for (size_t d = 0; d < index.size(); ++d) {
    const auto* s = index[d].as<Sum>();
    const std::vector<Term> terms = s ? s->terms : std::vector<Term>{{1, index[d]}};
    for (const Term& t : terms) {
      const bool last = d + 1 == index.size();
      const Var* v = analysis::variable_of(t.value);
      if (v && v->id == var && last && t.coefficient == part)
        along = true;
      else if (v && v->id == lane && !last)
        across = true;
      else if (used_vars(t.value).contains(var) || used_vars(t.value).contains(lane))
        return false;
    }
  }
  return along && across;
}

}  // namespace

bool cut_to_lines(CutBox& box, Lowering& l) {
  const size_t lane = box.vars.size() - box.parts - 1;
  const int64_t part = box.parts > 0 ? constant_int(box.extents.back()).value_or(1) : 1;
  size_t found = SIZE_MAX;
  int64_t piece = 0;
  auto access = [&](BufferId id, const std::vector<Expr>& index) {
    const Buffer& b = l.buffer(id);
    if (!l.is_global(id) || b.type.is_packed()) return;
    for (size_t d = 0; d + box.lanes + box.parts < box.vars.size(); ++d) {
      if (!runs_along(b, index, id_of(box.vars[d]), id_of(box.vars[lane]), part) &&
          !runs_along(b, index, id_of(box.vars[d]), id_of(box.vars[lane]), 1))
        continue;
      const int64_t size = kLine * 8 / b.type.storage_bits() / part;
      const auto extent = constant_int(box.extents[d]);
      if (extent && size > 1 && *extent % size == 0) found = d, piece = size;
    }
  };
  walk(box.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>()) access(n->to.buffer, n->to.indices);
  });
  walk_exprs(box.body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>()) access(n->buffer, n->indices);
  });
  if (found == SIZE_MAX) return false;
  const Expr old = box.vars[found];
  const std::string name = l.program.var(id_of(old)).name;
  const Expr line = l.index(name + "_line", wide(*constant_int(box.extents[found]) / piece));
  const Expr in_line = l.index(name + "_in_line", wide(piece));
  const std::map<VarId, Expr> map{{id_of(old), sum({{piece, line}, {1, in_line}}, 0, i64)}};
  box.body = rewrite_exprs(box.body, [&](const Expr& e) { return replacement(e, map, l.program); });
  if (auto owner = l.boxes.of.find(id_of(old)); owner != l.boxes.of.end()) {
    const size_t nest = owner->second;
    Expr& thread = l.boxes.thread[nest];
    thread = rewrite(thread, [&](const Expr& e) { return replacement(e, map, l.program); });
    l.boxes.of[id_of(line)] = l.boxes.of[id_of(in_line)] = nest;
  }
  box.vars[found] = line;
  box.extents[found] = wide(*constant_int(box.extents[found]) / piece);
  box.vars.insert(box.vars.begin() + static_cast<long>(lane) + 1, in_line);
  box.extents.insert(box.extents.begin() + static_cast<long>(lane) + 1, wide(piece));
  return true;
}

}  // namespace tilewright::passes
