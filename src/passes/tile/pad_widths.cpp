#include "passes/tile/pad_widths.h"

#include <algorithm>
#include <map>

#include "analysis/anywhere.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/zero.h"
#include "passes/threads/gemm_choice.h"
#include "target/mma.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kInstruction = 32;  // bytes along k of a matrix instruction; of a row, the narrowest panel of wgmma
// Rows of tensors that are no whole 32 bytes come slowly in the narrowest panels of wgmma, each of two sectors of
// memory. Panels of 64 bytes are taken for a sixth more of the product: attention of 104 dimensions as 128 took 0.81 to
// 0.93 of its time as 112 on an H200, of 72 dimensions as 96 1.0 to 1.1 of that as 80.
constexpr int64_t kPanel = 64;

// One dimension, as all tiles of a launch that have it do.
class Width {
 public:
  Width(const ProgramTables& p, const Launch& launch, int64_t width) : p_(p), launch_(launch), width_(width) {}

  // Whether it may be wider, beginning with a product's own tiles.
  bool find(const std::vector<std::pair<BufferId, size_t>>& of_product) {
    for (const auto& [tile, dim] : of_product) add(tile, dim);
    for (bool more = true; more && fits_;) {
      const size_t known = tiles_.size() + vars_.size();
      each_statement(launch_.body, [&](const Stmt& s) { follow(s); });
      more = tiles_.size() + vars_.size() > known;
    }
    each_statement(launch_.body, [&](const Stmt& s) { fits_ = fits_ && takes_more(s); });
    if (!fits_) return false;
    find_zeros();
    each_statement(launch_.body, [&](const Stmt& s) { fits_ = fits_ && adds_zeros(s); });
    return fits_;
  }
  // Of the narrowest elements of a tile that has it.
  int64_t narrowest_bits() const {
    int64_t bits = 64;
    for (const auto& [tile, dim] : tiles_) bits = std::min<int64_t>(bits, p_.buffer(tile).type.bits);
    return bits;
  }
  const std::map<BufferId, size_t>& tiles() const { return tiles_; }

  Body widened(int64_t wider) const {
    const auto grown = [&](Region r) {
      if (const auto dim = dim_of(r.buffer)) r.extent[*dim] = constant(r.extent[*dim]->type, wider);
      return r;
    };
    return rewrite(launch_.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto with = [&](auto op) { return Body{make_stmt(std::move(op), s->location)}; };
      if (const auto* n = s.as<Copy>()) {
        Copy c = *n;
        for (const auto& [from, to] : pairs(*n)) {
          if (dim_of(n->to.buffer) != to && dim_of(n->from.buffer) != from) continue;
          c.from.extent[from] = constant(c.from.extent[from]->type, wider);
          c.to.extent[to] = constant(c.to.extent[to]->type, wider);
        }
        return with(std::move(c));
      }
      if (const auto* n = s.as<Gemm>()) {
        Gemm g = *n;
        g.a = grown(g.a), g.b = grown(g.b), g.c = grown(g.c);
        return with(std::move(g));
      }
      if (const auto* n = s.as<Fill>()) {
        Fill f = *n;
        f.to = grown(f.to);
        return with(std::move(f));
      }
      if (const auto* n = s.as<Reduce>()) {
        Reduce r = *n;
        r.from = grown(r.from), r.to = grown(r.to);
        return with(std::move(r));
      }
      if (const auto* n = s.as<Map>()) {
        Map m = *n;
        for (size_t i = 0; i < m.vars.size(); ++i)
          if (vars_.contains(m.vars[i])) m.extents[i] = constant(m.extents[i]->type, wider);
        return with(std::move(m));
      }
      return std::nullopt;
    });
  }

 private:
  // Statements of maps are their map's.
  static void each_statement(const Body& body, function_ref<void(const Stmt&)> f) {
    for (const Stmt& s : body) {
      f(s);
      if (!s.as<Map>()) for_each_body(s, [&](const Body& inside) { each_statement(inside, f); });
    }
  }
  bool is_global(BufferId id) const { return p_.buffer(p_.root(id)).space == Space::Global; }
  std::optional<size_t> dim_of(BufferId tile) const {
    const auto found = tiles_.find(tile);
    return found == tiles_.end() ? std::nullopt : std::optional(found->second);
  }
  void add(BufferId tile, size_t dim) {
    const auto [at, is_new] = tiles_.emplace(tile, dim);
    if (!is_new) {
      fits_ = fits_ && at->second == dim;
      return;
    }
    const Buffer& b = p_.buffer(tile);
    fits_ = fits_ && (b.space == Space::Shared || b.space == Space::Fragment) && constant_int(b.shape[dim]) == width_ &&
            !b.is_view() && !b.reducer && b.strides.empty() && b.layout.kind == LayoutHint::None && b.type.bits >= 8 &&
            std::ranges::none_of(p_.buffers, [&](const Buffer& other) { return other.root == tile; });
  }

  // The dimensions of both sides of a copy that move elements, in order.
  static std::vector<std::pair<size_t, size_t>> pairs(const Copy& c) {
    const std::vector<size_t> a = moving_dims(c.from), b = moving_dims(c.to);
    std::vector<std::pair<size_t, size_t>> out;
    for (size_t i = 0; a.size() == b.size() && i < a.size(); ++i) out.emplace_back(a[i], b[i]);
    return out;
  }
  static std::vector<std::pair<std::pair<BufferId, size_t>, std::pair<BufferId, size_t>>> pairs(const Gemm& g) {
    const size_t a = g.a.min.size(), b = g.b.min.size(), c = g.c.min.size();
    return {{{g.a.buffer, a - (g.transpose_a ? 1 : 2)}, {g.c.buffer, c - 2}},
            {{g.b.buffer, b - (g.transpose_b ? 2 : 1)}, {g.c.buffer, c - 1}},
            {{g.a.buffer, a - (g.transpose_a ? 2 : 1)}, {g.b.buffer, b - (g.transpose_b ? 1 : 2)}}};
  }

  void follow(const Stmt& s) {
    const auto same = [&](BufferId x, size_t dx, BufferId y, size_t dy) {
      if (dim_of(x) == dx && !is_global(y)) add(y, dy);
      if (dim_of(y) == dy && !is_global(x)) add(x, dx);
    };
    if (const auto* n = s.as<Copy>()) {
      for (const auto& [from, to] : pairs(*n)) same(n->from.buffer, from, n->to.buffer, to);
    } else if (const auto* g = s.as<Gemm>()) {
      for (const auto& [x, y] : pairs(*g)) same(x.first, x.second, y.first, y.second);
    } else if (const auto* r = s.as<Reduce>()) {
      const std::vector<int> kept = kept_dims(*r);
      for (size_t to = 0; to < kept.size(); ++to)
        if (kept[to] >= 0) same(r->from.buffer, static_cast<size_t>(kept[to]), r->to.buffer, to);
    } else if (const auto* m = s.as<Map>()) {
      each_element(*m, [&](BufferId id, const std::vector<Expr>& index, bool) {
        for (size_t d = 0; d < index.size() && !is_global(id); ++d) {
          const auto* v = index[d].as<Var>();
          if (!v || std::ranges::find(m->vars, v->id) == m->vars.end()) continue;
          if (dim_of(id) == d) vars_.insert(v->id);
          if (vars_.contains(v->id)) add(id, d);
        }
      });
    }
  }
  static void each_element(const Map& m, function_ref<void(BufferId, const std::vector<Expr>&, bool)> f) {
    walk(m.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) f(n->to.buffer, n->to.indices, true);
    });
    walk_exprs(m.body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) f(n->buffer, n->indices, false);
    });
  }

  // ---- whether a statement means the same of what there was, with more behind it
  bool touches(const Stmt& s) const {
    return std::ranges::any_of(used_buffers({s}), [&](BufferId id) { return tiles_.contains(id); });
  }
  bool takes_more(const Stmt& s) const {
    if (s.as<For>() || s.as<If>() || s.as<While>()) {
      bool reads = false;
      for_each_expr(s, [&](const Expr& whole) {
        walk(whole, [&](const Expr& e) { reads = reads || (e.as<Load>() && tiles_.contains(e.as<Load>()->buffer)); });
      });
      return !reads;
    }
    if (const auto* m = s.as<Map>()) return !touches(s) || takes_more(*m);
    if (!touches(s)) return true;
    if (const auto* n = s.as<Fill>()) return all_of(n->to);
    if (const auto* n = s.as<Copy>()) return takes_more(*n);
    if (const auto* n = s.as<Gemm>())
      return n->completion.immediate() && !n->is_sparse() && all_of(n->a) && all_of(n->b) && all_of(n->c);
    const auto* n = s.as<Reduce>();
    return n && all_of(n->from) && all_of(n->to) && dim_of(n->from.buffer) != static_cast<size_t>(n->dim);
  }
  // Of a tile that has the dimension: all of that.
  bool all_of(const Region& r) const {
    const auto dim = dim_of(r.buffer);
    return !dim || (constant_int(r.min[*dim]) == 0 && constant_int(r.extent[*dim]) == width_);
  }
  bool takes_more(const Copy& c) const {
    if (!c.completion.immediate() || c.im2col.present() || c.multicast != 0 || !all_of(c.from) || !all_of(c.to))
      return false;
    bool found = false;
    for (const auto& [from, to] : pairs(c)) {
      const bool of_from = dim_of(c.from.buffer) == from, of_to = dim_of(c.to.buffer) == to;
      if (!of_from && !of_to) continue;
      found = true;
      if (is_global(c.from.buffer) && !ends_with(c.from.buffer, from, c.from.min[from])) return false;
      if (is_global(c.to.buffer) && !ends_with(c.to.buffer, to, c.to.min[to])) return false;
    }
    return found;
  }
  // Whether the tensor ends where the dimension does that begins there.
  bool ends_with(BufferId tensor, size_t d, const Expr& begin) const {
    const Buffer& b = p_.buffer(tensor);
    return !b.is_view() && !b.fill && !b.address && constant_int(begin) == 0 && constant_int(b.shape[d]) == width_;
  }
  bool takes_more(const Map& m) const {
    bool fits = true;
    for (size_t i = 0; i < m.vars.size(); ++i)
      if (vars_.contains(m.vars[i])) fits = fits && constant_int(m.extents[i]) == width_;
    walk(m.body, [&](const Stmt& s) { fits = fits && (s.as<Store>() || s.as<Let>() || s.as<If>()); });
    each_element(m, [&](BufferId id, const std::vector<Expr>& index, bool stores) {
      size_t named = 0;
      for (size_t d = 0; d < index.size(); ++d) {
        const auto* v = index[d].as<Var>();
        const bool is_it = v && vars_.contains(v->id);
        const bool uses = std::ranges::any_of(used_vars(index[d]), [&](VarId x) { return vars_.contains(x); });
        const bool is_ours = dim_of(id) == d;
        fits = fits && (!uses || (is_it && (is_ours || (is_global(id) && ends_with(id, d, constant(0))))));
        fits = fits && (!is_ours || !stores || is_it);
        named += is_it;
      }
      // Every point stores an element of its own.
      fits = fits && (!stores || named == 1 || !uses_vars(m));
    });
    walk_exprs(m.body, [&](const Expr& e) { fits = fits && !analysis::may_divide_by_zero(e); });
    return fits;
  }
  bool uses_vars(const Map& m) const {
    return std::ranges::any_of(m.vars, [&](VarId v) { return vars_.contains(v); });
  }

  // ---- which tiles hold zeros behind what there was
  void find_zeros() {
    for (const auto& [tile, dim] : tiles_) zeros_.insert(tile);
    for (bool more = true; more;) {
      const size_t known = zeros_.size();
      each_statement(launch_.body, [&](const Stmt& s) { leaves_others(s); });
      more = zeros_.size() < known;
    }
  }
  void leaves_others(const Stmt& s) {
    if (const auto* n = s.as<Fill>()) {
      if (!is_zero(n->value)) zeros_.erase(n->to.buffer);
    } else if (const auto* n = s.as<Copy>()) {
      if (!is_global(n->from.buffer) && !zeros_.contains(n->from.buffer)) zeros_.erase(n->to.buffer);
    } else if (const auto* n = s.as<Gemm>()) {
      zeros_.erase(n->c.buffer);  // what is not finite makes NaN of a zero
    } else if (const auto* n = s.as<Reduce>()) {
      if (!zeros_.contains(n->from.buffer)) zeros_.erase(n->to.buffer);
    } else if (const auto* n = s.as<Map>()) {
      walk(n->body, [&](const Stmt& x) {
        const auto* store = x.as<Store>();
        if (store && zeros_.contains(store->to.buffer) && !becomes_zero(store->value)) zeros_.erase(store->to.buffer);
      });
    }
  }
  bool becomes_zero(const Expr& value) const {
    return is_zero(rewrite(value, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      const auto dim = n ? dim_of(n->buffer) : std::nullopt;
      const auto* v = dim ? n->indices[*dim].as<Var>() : nullptr;
      const bool is_behind = v && vars_.contains(v->id) && zeros_.contains(n->buffer);
      return is_behind ? std::optional(constant(e->type, int64_t{0})) : std::nullopt;
    }));
  }
  bool adds_zeros(const Stmt& s) const {
    const auto* g = s.as<Gemm>();
    if (!g) return true;
    const auto [a, b] = pairs(*g)[2];
    return dim_of(a.first) != a.second || (zeros_.contains(a.first) && zeros_.contains(b.first));
  }

  const ProgramTables& p_;
  const Launch& launch_;
  const int64_t width_;
  std::map<BufferId, size_t> tiles_;  // that have it, and which of their dimensions it is
  std::set<VarId> vars_;              // of maps
  std::set<BufferId> zeros_;
  bool fits_ = true;
};

struct Found {
  int64_t width = 0;
  std::vector<std::pair<BufferId, size_t>> tiles;
};

// What is too narrow of a product.
std::vector<Found> odd_widths(const ProgramTables& p, const Gemm& g, const target::GpuTarget& target) {
  const DType a = operand_type(p, g, g.a), b = operand_type(p, g, g.b), c = p.buffer(g.c.buffer).type;
  if (g.is_sparse() || !target::mma_for(a, b, c, target.arch)) return {};
  const GemmExtents e = extents_of(g);
  const size_t ra = g.a.min.size(), rb = g.b.min.size();
  const auto is_odd = [](int64_t width, DType type) { return width * type.bits / 8 % kInstruction != 0; };
  std::vector<Found> out;
  if (is_odd(e.k, a))
    out.push_back({e.k, {{g.a.buffer, ra - (g.transpose_a ? 2 : 1)}, {g.b.buffer, rb - (g.transpose_b ? 1 : 2)}}});
  if (target.has.wgmma && !g.transpose_b && is_odd(e.columns, b)) out.push_back({e.columns, {{g.b.buffer, rb - 1}}});
  return out;
}

// The first of a launch that may be wider, made so. Whether there was one.
bool pad_one(TileProgram& p, Launch& launch, const target::GpuTarget& target) {
  std::vector<Found> found;
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* g = s.as<Gemm>())
      for (Found& f : odd_widths(p, *g, target)) found.push_back(std::move(f));
  });
  for (const Found& f : found) {
    Width width(p, launch, f.width);
    if (!width.find(f.tiles)) continue;
    const auto whole = [&](int64_t bytes) {
      const int64_t unit = bytes * 8 / width.narrowest_bits();
      return (f.width + unit - 1) / unit * unit;
    };
    const bool in_panels = target.has.wgmma && 6 * whole(kPanel) <= 7 * whole(kInstruction);
    const int64_t wider = whole(in_panels ? kPanel : kInstruction);
    launch.body = width.widened(wider);
    for (const auto& [tile, dim] : width.tiles()) {
      Expr& extent = p.buffers[tile.index].shape[dim];
      extent = constant(extent->type, wider);
    }
    return true;
  }
  return false;
}

}  // namespace

void pad_widths(TileProgram& program, const target::GpuTarget& target) {
  for (Launch& launch : program.launches)
    while (pad_one(program, launch, target)) {
    }
}

}  // namespace tilewright::passes
