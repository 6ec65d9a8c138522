#include "passes/tile/pad_tiles.h"

#include <algorithm>
#include <map>

#include "analysis/accessed.h"
#include "analysis/anywhere.h"
#include "analysis/load_rings.h"
#include "analysis/tma.h"
#include "analysis/uniformity.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/gemm_choice.h"
#include "passes/tile/narrow_panels.h"
#include "plan/decide.h"
#include "plan/price.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kColumns = 8;               // of wgmma's accumulators, in multiples (PTX ISA, wgmma.mma_async)
constexpr int64_t kPanels[] = {128, 64, 32};  // bytes of a row that an instruction reads whole
constexpr int64_t kRoomOfResults = 16384;     // bytes, of each warpgroup: in chunks (plan/decide.cpp)

struct Side {
  BufferId tile;
  size_t dim = 0;
  auto operator<=>(const Side&) const = default;
};

// Rows or columns of a product, in all tiles that have them because it does: they are longer together.
class Growth {
 public:
  Growth(const ProgramTables& p, const Launch& launch) : p_(p), launch_(launch) {}

  // Whether the dimension may be so long.
  bool grow(const std::vector<Side>& sides, int64_t from, int64_t to) {
    dims_.clear();
    width_ = from;
    for (const Side& s : sides) add(s);
    for (bool more = true; more && fits_;) {
      const size_t known = dims_.size();
      each_statement(launch_.body, [&](const Stmt& s) { follow(s); });
      more = dims_.size() > known;
    }
    each_statement(launch_.body, [&](const Stmt& s) { fits_ = fits_ && is_alike(s); });
    for (const auto& [tile, dim] : dims_) grown_[tile].push_back({dim, to});
    return fits_;
  }
  const std::map<BufferId, std::vector<std::pair<size_t, int64_t>>>& grown() const { return grown_; }

  // The launch with its tiles as they are now, in a program of which these are the tables.
  void apply(TileProgram& p, Launch& launch) const {
    launch.body = rewrite(launch.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto with = [&](auto op) { return Body{make_stmt(std::move(op), s->location)}; };
      if (const auto* n = s.as<Gemm>()) {
        Gemm g = *n;
        for (Region* r : {&g.a, &g.b, &g.c}) lengthen(*r);
        return with(std::move(g));
      }
      if (const auto* n = s.as<Fill>()) {
        Fill f = *n;
        if (is_fragment(f.to.buffer) && is_whole(f.to, p_.buffer(f.to.buffer))) lengthen(f.to);
        return with(std::move(f));
      }
      if (const auto* n = s.as<Reduce>()) {
        Reduce r = *n;
        lengthen(r.from), lengthen(r.to);
        return with(std::move(r));
      }
      if (const auto* n = s.as<Copy>()) {
        Copy c = *n;
        if (is_fragment(c.from.buffer) && is_fragment(c.to.buffer)) lengthen(c.from), lengthen(c.to);
        return with(std::move(c));
      }
      return std::nullopt;
    });
    Body zeros;
    for (const auto& [tile, dims] : grown_)
      for (const auto& [dim, to] : dims) {
        Expr& extent = p.buffers[tile.index].shape[dim];
        const int64_t from = *constant_int(extent);
        extent = constant(extent->type, to);
        if (is_fragment(tile)) continue;
        Region rest = whole(tile, p);
        rest.min[dim] = constant(rest.min[dim]->type, from), rest.extent[dim] = constant(extent->type, to - from);
        const Expr zero = constant(p.buffer(tile).type, int64_t{0});
        zeros.push_back(make_stmt(Fill{std::move(rest), zero}, launch.location));
      }
    launch.body.insert(launch.body.begin(), zeros.begin(), zeros.end());
  }

 private:
  // Statements of maps are their map's.
  static void each_statement(const Body& body, function_ref<void(const Stmt&)> f) {
    for (const Stmt& s : body) {
      f(s);
      if (!s.as<Map>()) for_each_body(s, [&](const Body& inside) { each_statement(inside, f); });
    }
  }
  bool is_fragment(BufferId id) const { return p_.buffer(id).space == Space::Fragment; }
  void lengthen(Region& r) const {
    const auto found = grown_.find(r.buffer);
    if (found == grown_.end()) return;
    for (const auto& [dim, to] : found->second) r.extent[dim] = constant(r.extent[dim]->type, to);
  }
  bool is_it(BufferId tile, size_t dim) const {
    const auto found = dims_.find(tile);
    return found != dims_.end() && found->second == dim;
  }
  void add(const Side& s) {
    const auto [at, is_new] = dims_.emplace(s.tile, s.dim);
    if (!is_new) {
      fits_ = fits_ && at->second == s.dim;
      return;
    }
    const Buffer& b = p_.buffer(s.tile);
    fits_ = fits_ && (b.space == Space::Shared || b.space == Space::Fragment) &&
            constant_int(b.shape[s.dim]) == width_ && !b.is_view() && !b.reducer && b.strides.empty() &&
            b.layout.kind == LayoutHint::None && b.type.bits >= 8 &&
            std::ranges::none_of(p_.buffers, [&](const Buffer& other) { return other.root == s.tile; }) &&
            !analysis::names_as_a_whole(launch_.body, s.tile);
  }

  void follow(const Stmt& s) {
    const auto same = [&](BufferId x, size_t dx, BufferId y, size_t dy) {
      if (is_it(x, dx)) add({y, dy});
      if (is_it(y, dy)) add({x, dx});
    };
    if (const auto* g = s.as<Gemm>()) {
      const size_t a = g->a.min.size(), b = g->b.min.size(), c = g->c.min.size();
      same(g->a.buffer, a - (g->transpose_a ? 1 : 2), g->c.buffer, c - 2);
      same(g->b.buffer, b - (g->transpose_b ? 2 : 1), g->c.buffer, c - 1);
    } else if (const auto* n = s.as<Copy>()) {
      const std::vector<size_t> from = moving_dims(n->from), to = moving_dims(n->to);
      if (is_fragment(n->from.buffer) && is_fragment(n->to.buffer))
        for (size_t i = 0; i < std::min(from.size(), to.size()); ++i)
          same(n->from.buffer, from[i], n->to.buffer, to[i]);
    } else if (const auto* r = s.as<Reduce>()) {
      const std::vector<int> kept = kept_dims(*r);
      for (size_t to = 0; to < kept.size(); ++to)
        if (kept[to] >= 0) same(r->from.buffer, static_cast<size_t>(kept[to]), r->to.buffer, to);
    } else if (const auto* m = s.as<Map>()) {
      // Fragments that lie over the threads alike.
      std::set<VarId> along;
      each_index(*m, [&](BufferId id, size_t d, VarId v) {
        if (is_it(id, d) && is_fragment(id)) along.insert(v);
      });
      each_index(*m, [&](BufferId id, size_t d, VarId v) {
        if (along.contains(v) && is_fragment(id)) add({id, d});
      });
    }
  }
  static void each_index(const Map& m, function_ref<void(BufferId, size_t, VarId)> f) {
    const auto access = [&](BufferId id, const std::vector<Expr>& index) {
      for (size_t d = 0; d < index.size(); ++d)
        if (const auto* v = index[d].as<Var>(); v && std::ranges::find(m.vars, v->id) != m.vars.end()) f(id, d, v->id);
    };
    walk(m.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) access(n->to.buffer, n->to.indices);
      if (const auto* n = s.as<Atomic>()) access(n->to.buffer, n->to.indices);
    });
    walk_exprs(m.body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) access(n->buffer, n->indices);
    });
  }

  // ---- whether a statement does the same where tiles have more, of which it may know
  bool is_alike(const Stmt& s) const {
    const auto touched = [&](const auto& names) {
      return std::ranges::any_of(names, [&](BufferId id) { return dims_.contains(id); });
    };
    if (s.as<For>() || s.as<If>() || s.as<While>()) {
      bool reads = false;
      for_each_expr(s, [&](const Expr& whole) {
        walk(whole, [&](const Expr& e) { reads = reads || (e.as<Load>() && dims_.contains(e.as<Load>()->buffer)); });
      });
      return !reads;
    }
    if (!touched(used_buffers({s}))) return true;
    if (s.as<Map>() || s.as<Fill>()) return true;
    if (const auto* n = s.as<Copy>()) {
      const bool both = is_fragment(n->from.buffer) && is_fragment(n->to.buffer);
      return n->completion.immediate() && n->multicast == 0 && (!both || (all_of(n->from) && all_of(n->to)));
    }
    if (const auto* g = s.as<Gemm>()) {
      const size_t a = g->a.min.size(), b = g->b.min.size();
      return g->completion.immediate() && !g->is_sparse() && all_of(g->a) && all_of(g->b) && all_of(g->c) &&
             !is_it(g->a.buffer, a - (g->transpose_a ? 2 : 1)) && !is_it(g->b.buffer, b - (g->transpose_b ? 1 : 2));
    }
    const auto* r = s.as<Reduce>();
    return r && all_of(r->from) && all_of(r->to) && !is_it(r->from.buffer, static_cast<size_t>(r->dim));
  }
  bool all_of(const Region& r) const {
    const auto found = dims_.find(r.buffer);
    return found == dims_.end() ||
           (constant_int(r.min[found->second]) == 0 && constant_int(r.extent[found->second]) == width_);
  }

  const ProgramTables& p_;
  const Launch& launch_;
  int64_t width_ = 0;
  std::map<BufferId, size_t> dims_;  // of the one that grows
  std::map<BufferId, std::vector<std::pair<size_t, int64_t>>> grown_;
  bool fits_ = true;
};

// What a launch is with other tiles.
struct Trial {
  TileProgram program;
  double clocks = 0;        // of its products
  bool by_wgmma = true;     // all of them
  bool is_turned = false;   // by it the other way round
  int64_t stage_bytes = 0;  // of a stage of its loops
};

class TilePadder {
 public:
  TilePadder(const TileProgram& p, size_t number, const target::GpuTarget& target)
      : p_(p), number_(number), launch_(p.launches[number]), target_(target) {}

  // The program with the launch's tiles as they are best, or as they are.
  std::optional<Trial> run() const {
    if (launch_.threads.size() != 1 || launch_.threads[0] % target::kWarpgroupThreads != 0) return std::nullopt;
    const auto product = the_product();
    if (!product) return std::nullopt;
    auto as_is = tried(p_);
    if (as_is.by_wgmma && !as_is.is_turned) return as_is;
    const GemmExtents e = extents_of(*product);
    std::optional<Trial> best;
    for (const int64_t rows : rows_for(e.rows))
      for (const int64_t columns : columns_for(*product, e.columns)) {
        if (rows == e.rows && columns == e.columns) continue;
        auto trial = padded(e, rows, columns);
        if (trial && trial->by_wgmma && trial->clocks < (best ? *best : as_is).clocks && fits(*trial, as_is))
          best = std::move(trial);
      }
    return best ? best : as_is;
  }

 private:
  // Of all products of the launch, which have the same rows and columns.
  std::optional<Gemm> the_product() const {
    std::optional<Gemm> out;
    bool same = true;
    walk(launch_.body, [&](const Stmt& s) {
      same = same && !s.as<ir::Role>();
      const auto* g = s.as<Gemm>();
      if (!g) return;
      const Buffer& c = p_.buffer(g->c.buffer);
      same = same && c.space == Space::Fragment && c.rank() == 2 && !g->is_sparse() &&
             target::wgmma_for(operand_type(p_, *g, g->a), operand_type(p_, *g, g->b), c.type);
      if (!same) return;
      const GemmExtents e = extents_of(*g);
      if (!out)
        out = *g;
      else
        same = e.rows == extents_of(*out).rows && e.columns == extents_of(*out).columns;
    });
    return same ? out : std::nullopt;
  }
  static std::vector<int64_t> up_to(int64_t first, std::set<int64_t> units) {
    std::set<int64_t> out{first};
    for (const int64_t unit : units) out.insert(ceil_div(first, unit) * unit);
    return {out.begin(), out.end()};
  }
  int64_t groups() const { return launch_.threads[0] / target::kWarpgroupThreads; }
  std::vector<int64_t> rows_for(int64_t rows) const {
    std::set<int64_t> units;
    for (int64_t m = 1; m <= groups(); ++m)
      if (groups() % m == 0) units.insert(target::kWgmmaRows * m);
    return up_to(rows, units);
  }
  std::vector<int64_t> columns_for(const Gemm& g, int64_t columns) const {
    std::set<int64_t> units;
    for (int64_t n = 1; n <= groups(); ++n) {
      if (groups() % n != 0) continue;
      units.insert(kColumns * n);
      for (const int64_t bytes : kPanels)
        if (!g.transpose_b) units.insert(bytes * 8 / p_.buffer(g.b.buffer).type.bits * n);
    }
    return up_to(columns, units);
  }

  std::optional<Trial> padded(const GemmExtents& e, int64_t rows, int64_t columns) const {
    TileProgram program = p_;
    Growth growth(p_, launch_);
    std::vector<Side> of_rows, of_columns;
    walk(launch_.body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      if (!g) return;
      of_rows.push_back({g->c.buffer, g->c.min.size() - 2});
      of_columns.push_back({g->c.buffer, g->c.min.size() - 1});
    });
    if (rows != e.rows && !growth.grow(of_rows, e.rows, rows)) return std::nullopt;
    if (columns != e.columns && !growth.grow(of_columns, e.columns, columns)) return std::nullopt;
    growth.apply(program, program.launches[number_]);
    // What TMA brings it still does.
    bool comes = true;
    const Body& now = program.launches[number_].body;
    walk(now, [&](const Stmt& s) {
      const auto* c = s.as<Copy>();
      if (c && growth.grown().contains(c->to.buffer) && program.buffer(c->to.buffer).space == Space::Shared)
        comes = comes && analysis::ring_misfit(program, *c).empty();
    });
    return comes ? std::optional(tried(std::move(program))) : std::nullopt;
  }
  Trial tried(TileProgram program) const {
    Trial out{std::move(program)};
    TileProgram scratch = out.program;
    narrow_panels(scratch, target_);
    Launch& launch = scratch.launches[number_];
    number_statements(launch);
    const analysis::Uniformity uniformity(scratch, launch);
    const std::set<const Gemm*> turned = plan::turned_products(scratch, launch, launch.thread_count(), target_);
    walk(launch.body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      if (!g) return;
      const GemmPlace place{.threads = uniformity.executing_set(s),
                            .c_in_registers = true,
                            .a_in_registers = scratch.buffer(g->a.buffer).space == Space::Fragment,
                            .min_blocks = launch.min_blocks,
                            .no_wgmma = "",
                            .may_transpose = turned.contains(g)};
      const GemmChoice choice = choose_gemm(scratch, *g, place, target_);
      out.by_wgmma = out.by_wgmma && choice.wgmma;
      out.is_turned = out.is_turned || choice.transposed;
      const Gemm by = choice.transposed ? transpose_of(*g) : *g;
      const auto [rows, columns, k] = extents_of(by);
      out.clocks += plan::clocks_of(scratch, by, {rows, columns, k}, place.threads.count(), target_).together();
    });
    std::set<BufferId> seen;
    walk(launch.body, [&](const Stmt& s) {
      const auto* c = s.as<Copy>();
      if (c && scratch.buffer(c->from.buffer).space == Space::Global &&
          scratch.buffer(c->to.buffer).space == Space::Shared && seen.insert(c->to.buffer).second)
        out.stage_bytes += bytes_on_chip(scratch.buffer(c->to.buffer));
    });
    return out;
  }
  // Whether rings have as many slots as they would have now, of those without which turns wait.
  bool fits(const Trial& after, const Trial& before) const {
    const int64_t room =
        target_.shared_bytes_of_blocks(std::max<int64_t>(launch_.min_blocks, 1)) - groups() * kRoomOfResults;
    const auto slots = [&](const Trial& t) {
      return std::min(plan::kEnoughSlots, room / std::max<int64_t>(t.stage_bytes, 1));
    };
    return slots(after) >= slots(before);
  }

  const TileProgram& p_;
  const size_t number_;
  const Launch& launch_;
  const target::GpuTarget& target_;
};

}  // namespace

void pad_tiles(TileProgram& program, const target::GpuTarget& target) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    if (auto best = TilePadder(program, i, target).run()) program = std::move(best->program);
}

bool will_have_wgmma(const TileProgram& program, size_t launch, const target::GpuTarget& target) {
  if (!target.has.wgmma) return false;
  const auto best = TilePadder(program, launch, target).run();
  return best && best->by_wgmma;
}

}  // namespace tilewright::passes
