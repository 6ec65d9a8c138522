#include "passes/tile/pad_rows.h"

#include "analysis/accessed.h"
#include "analysis/anywhere.h"
#include "analysis/body_order.h"
#include "analysis/warp_grid.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/collectives.h"
#include "passes/threads/fragment_box.h"
#include "passes/threads/gemm_choice.h"
#include "passes/tile/pad_tiles.h"
#include "target/mma.h"

namespace tilewright::passes {

using namespace ir;
using analysis::followed;

namespace {

constexpr int64_t kRows = target::kMmaRows;
constexpr int64_t kColumns = 8;  // of mma.sync's accumulators (PTX ISA 9.7.14.5)
constexpr int kOldestArch = 80;  // types that its instructions multiply, later ones multiply too
// What as many rows or more cost is less than products without the instruction, which have a tenth of its speed.
constexpr int64_t kFewRows = 64, kMostTimes = 2;

class Padder {
 public:
  Padder(TileProgram& p, Launch& launch) : p_(p), launch_(launch), written_(changed_roots(launch.body, p)) {}

  void run() {
    if (!find_rows() || !find_tiles()) return;
    number_statements(launch_);
    Body padded = rewrite(launch_.body, [&](const Stmt& s) { return statement(s); });
    if (!fits_ && rows_ < kRows && padded_ > kRows) {  // a thread has one row of 16, and knows whose it is
      padded_ = kRows, fits_ = true;
      padded = rewrite(launch_.body, [&](const Stmt& s) { return statement(s); });
    }
    if (!fits_) return;
    launch_.body = padded;
    for (BufferId id : tiles_) p_.buffers[id.index].shape[0] = rows(padded_);
  }

 private:
  static Expr rows(int64_t count) { return constant(i32, count); }
  // The rows of the products: the same in all of them, too few, or such that they do not divide among the warps, of
  // types that an instruction multiplies.
  bool find_rows() {
    bool same = true;
    std::vector<Gemm> products;
    walk(launch_.body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      if (!g) return;
      const Buffer &a = p_.buffer(g->a.buffer), &c = p_.buffer(g->c.buffer);
      const int64_t here = c.rank() == 2 ? constant_int(c.shape[0]).value_or(0) : 0;
      const target::MmaInstruction* mma =
          target::mma_for(operand_type(p_, *g, g->a), operand_type(p_, *g, g->b), c.type, kOldestArch);
      same = same && here > 1 && (rows_ == 0 || here == rows_) && c.space == Space::Fragment && a.rank() == 2 &&
             !g->transpose_a && !g->is_sparse() && g->completion.immediate() && mma;
      products.push_back(*g);
      rows_ = here;
      tiles_.insert(g->a.buffer), tiles_.insert(g->c.buffer);
    });
    if (!same || rows_ == 0) return false;
    padded_ = rows_that_divide(products);
    return padded_ > rows_;
  }
  // As many as the program has, where the instruction has no place in any number of them.
  int64_t rows_that_divide(const std::vector<Gemm>& products) const {
    const int64_t few = std::max(rows_, kRows);
    const auto divide = [&](int64_t rows) {
      return std::ranges::all_of(products, [&](const Gemm& g) { return divides(g, rows); });
    };
    if (!std::ranges::all_of(products, [&](const Gemm& g) { return takes_operands(g); })) return few;
    if (rows_ >= kRows && divide(rows_)) return rows_;
    for (int64_t rows = (few + kRows - 1) / kRows * kRows; rows <= std::max(kFewRows, kMostTimes * rows_);
         rows += kRows)
      if (divide(rows)) return rows;
    return few;
  }
  bool divides(const Gemm& g, int64_t rows) const {
    const int64_t threads = launch_.threads.size() == 1 ? launch_.threads[0] : 0, columns = extents_of(g).columns;
    return threads > 0 && threads % kWarpThreads == 0 &&
           analysis::divide_warps(g.policy, rows, columns, threads / kWarpThreads, kRows, kColumns, false).has_value();
  }
  // Whether the instruction reads such operands, were there rows for it.
  bool takes_operands(const Gemm& g) const {
    const DType a = operand_type(p_, g, g.a);
    const auto* mma = target::mma_for(a, operand_type(p_, g, g.b), p_.buffer(g.c.buffer).type, kOldestArch);
    return mma && extents_of(g).k % mma->k == 0 && (g.transpose_b || a.bits >= 16);
  }
  // The fragments that have these rows, and the products' operands.
  bool find_tiles() {
    for (BufferId id : used_buffers(launch_.body)) {
      const Buffer& b = p_.buffer(id);
      if (b.space == Space::Fragment && constant_int(b.shape[0]) == rows_) tiles_.insert(id);
    }
    return std::all_of(tiles_.begin(), tiles_.end(), [&](BufferId id) {
      const Buffer& b = p_.buffer(id);
      return constant_int(b.shape[0]) == rows_ && b.rank() <= 2 && !b.is_view() && !b.reducer && b.strides.empty() &&
             b.layout.kind == LayoutHint::None && (b.space == Space::Fragment || b.space == Space::Shared) &&
             std::none_of(p_.buffers.begin(), p_.buffers.end(), [&](const Buffer& o) { return o.root == id; });
    });
  }
  bool is_tile(BufferId id) const { return tiles_.contains(id); }
  bool touches_tile(const Stmt& s) const {
    const std::set<BufferId> used = used_buffers({s});
    return std::any_of(used.begin(), used.end(), [&](BufferId id) { return is_tile(id); });
  }
  bool grow(Region& r) const {
    if (!is_tile(r.buffer)) return true;
    if (!is_whole(r, p_.buffer(r.buffer))) return false;
    r.extent[0] = constant(r.extent[0]->type, padded_);
    return true;
  }
  template <class T>
  std::optional<Body> made(T op, const Stmt& s) const {
    return Body{make_stmt(std::move(op), s->location)};
  }
  std::optional<Body> refuse() {
    fits_ = false;
    return std::nullopt;
  }

  std::optional<Body> statement(const Stmt& s) {
    if (!fits_ || s.as<For>() || s.as<If>() || s.as<While>()) return std::nullopt;
    if (inside_map(s) || !touches_tile(s)) return std::nullopt;
    if (const auto* n = s.as<Fill>()) {
      Fill f = *n;
      return grow(f.to) ? made(std::move(f), s) : refuse();
    }
    if (const auto* n = s.as<Gemm>()) {
      Gemm g = *n;
      return grow(g.a) && grow(g.c) && !is_tile(g.b.buffer) ? made(std::move(g), s) : refuse();
    }
    if (const auto* n = s.as<Reduce>()) {
      Reduce r = *n;
      return n->dim == 1 && is_tile(r.from.buffer) && is_tile(r.to.buffer) && grow(r.from) && grow(r.to)
                 ? made(std::move(r), s)
                 : refuse();
    }
    if (const auto* n = s.as<Copy>()) return copy(*n, s);
    if (const auto* n = s.as<Map>()) return map(*n, s);
    return refuse();
  }
  // Statements of a Map are the Map's, which comes after them.
  bool inside_map(const Stmt& s) {
    if (in_maps_.empty())
      walk(launch_.body, [&](const Stmt& x) {
        if (const auto* n = x.as<Map>()) walk(n->body, [&](const Stmt& y) { in_maps_.insert(y->id); });
      });
    return in_maps_.contains(s->id) || s.as<Store>() || s.as<Let>();
  }

  // More rows come than are asked for: what lies behind in the tensor, or nothing. They go no further. Of a tensor that
  // the launch writes, rows behind may be another block's: zeros come instead.
  std::optional<Body> copy(const Copy& n, const Stmt& s) {
    Copy c = n;
    if (n.combine != ir::Combine::None || n.im2col.present() || !n.completion.immediate()) return refuse();
    if (is_tile(n.from.buffer) && is_tile(n.to.buffer))
      return grow(c.from) && grow(c.to) ? made(std::move(c), s) : refuse();
    if (is_tile(n.to.buffer)) {
      const auto row = row_of(n.from);
      if (p_.buffer(n.from.buffer).space != Space::Global || !row || !grow(c.to)) return refuse();
      if (is_written(n.from.buffer)) return comes(n, s);
      c.from.extent[*row] = constant(c.from.extent[*row]->type, padded_);
      return made(std::move(c), s);
    }
    return leaves(n, s);
  }
  // The dimension along which the rows lie: the first that is not of one element.
  std::optional<size_t> row_of(const Region& r) const {
    for (size_t d = 0; d < r.extent.size(); ++d)
      if (const auto extent = constant_int(r.extent[d]); extent != 1)
        return extent == rows_ ? std::optional(d) : std::nullopt;
    return std::nullopt;
  }
  // A tile comes from memory or goes there: its own rows do.
  std::optional<Body> comes(const Copy& n, const Stmt& s) {
    auto points = padded_ > kRows ? std::nullopt : points_of(n.to, n.from);
    if (!points) return refuse();
    const DType type = p_.buffer(n.from.buffer).type;
    const Expr value = of_own_row(points->place[0], load(n.from.buffer, points->at, type));
    points->map.body = {
        make_stmt(Store{{n.to.buffer, points->place}, cast(value, p_.buffer(n.to.buffer).type)}, s->location)};
    return made(std::move(points->map), s);
  }
  std::optional<Body> leaves(const Copy& n, const Stmt& s) {
    auto points = is_whole(n.from, p_.buffer(n.from.buffer)) && row_of(n.to) ? points_of(n.from, n.to) : std::nullopt;
    if (!points) return refuse();
    const Expr value =
        cast(load(n.from.buffer, points->place, p_.buffer(n.from.buffer).type), p_.buffer(n.to.buffer).type);
    points->map.body =
        own_rows(points->place[0], {make_stmt(Store{{n.to.buffer, points->at}, value}, s->location)}, s->location);
    return made(std::move(points->map), s);
  }
  struct Points {
    Map map;                      // over the tile with all its rows
    std::vector<Expr> place, at;  // in the tile, in the other region
  };
  std::optional<Points> points_of(const Region& tile, const Region& other) {
    Points out{{}, {}, other.min};
    for (const Expr& e : p_.buffer(tile.buffer).shape) {
      out.map.vars.push_back(p_.new_var(out.map.vars.empty() ? "i" : "j", i32));
      out.map.extents.push_back(cast(e, i32));
      out.place.push_back(var(out.map.vars.back(), i32));
    }
    out.map.extents[0] = rows(padded_);
    size_t next = 0;
    for (size_t d = 0; d < out.at.size(); ++d) {
      if (constant_int(other.extent[d]) == 1) continue;
      if (next == out.place.size()) return std::nullopt;
      out.at[d] = add(out.at[d], cast(out.place[next++], out.at[d]->type));
    }
    return next == out.place.size() ? std::optional(std::move(out)) : std::nullopt;
  }
  bool is_written(BufferId id) const { return analysis::may_overlap(id, written_, p_); }
  Expr of_own_row(const Expr& row, const Expr& value) const {
    return select(binary(BinaryOp::Lt, row, constant(row->type, rows_)), value, constant(value->type, int64_t{0}));
  }
  Body own_rows(const Expr& row, Body body, LocationId at) const {
    return {make_stmt(If{binary(BinaryOp::Lt, row, constant(row->type, rows_)), std::move(body), {}}, at)};
  }

  std::optional<Body> map(const Map& n, const Stmt& s) {
    std::optional<size_t> row;
    bool fits = true, writes_tiles = false, writes_others = false;
    auto access = [&](BufferId id, const std::vector<Expr>& indices) {
      if (!is_tile(id)) return;
      const auto at = followed({indices[0]}, n.vars);
      fits = fits && at && at->dims[0] >= 0 && at->first[0] == 0 && (!row || *row == static_cast<size_t>(at->dims[0]));
      if (fits) row = static_cast<size_t>(at->dims[0]);
    };
    walk_exprs(n.body, [&](const Expr& e) {
      fits = fits && !analysis::may_divide_by_zero(e);
      const auto* x = e.as<Load>();
      if (!x) return;
      access(x->buffer, x->indices);
      fits = fits && (is_tile(x->buffer) || p_.buffer(p_.root(x->buffer)).space == Space::Global);
    });
    walk(n.body, [&](const Stmt& x) {
      fits = fits && (x.as<Store>() || x.as<Let>() || x.as<If>());
      const auto* store = x.as<Store>();
      if (!store) return;
      access(store->to.buffer, store->to.indices);
      (is_tile(store->to.buffer) ? writes_tiles : writes_others) = true;
    });
    if (!fits || !row || constant_int(n.extents[*row]) != rows_ || (writes_tiles && writes_others)) return refuse();
    Map m = n;
    const Expr at = var(n.vars[*row], p_.var(n.vars[*row]).type);
    m.extents[*row] = constant(m.extents[*row]->type, padded_);
    if (writes_others)
      m.body = own_rows(at, std::move(m.body), s->location);
    else
      m.body = rewrite_exprs(m.body, [&](const Expr& e) -> std::optional<Expr> {
        const auto* x = e.as<Load>();
        if (!x || is_tile(x->buffer) || !is_written(x->buffer)) return std::nullopt;
        fits = fits && padded_ == kRows;
        return of_own_row(at, e);
      });
    return fits ? made(std::move(m), s) : refuse();
  }

  TileProgram& p_;
  Launch& launch_;
  int64_t rows_ = 0, padded_ = 0;
  std::set<BufferId> tiles_;
  std::set<StmtId> in_maps_;
  const std::set<BufferId> written_;
  bool fits_ = true;
};

}  // namespace

TileProgram pad_rows(TileProgram program, const target::GpuTarget& target) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    if (!will_have_wgmma(program, i, target)) Padder(program, program.launches[i]).run();
  return program;
}

}  // namespace tilewright::passes
