// Rows that the blocks of a cluster share, as statements.
#include "analysis/shared_rows.h"

#include "analysis/shared_tiles.h"
#include "ir/extent.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/lowering.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/schedules.h"
#include "plan/fit_registers.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Sharer {
 public:
  Sharer(TileProgram& p, Launch& launch, int64_t parts, analysis::SharedRows rows)
      : p_(p), launch_(launch), parts_(parts), rows_(std::move(rows)), columns_(rows_.columns / parts) {}

  void run() {
    part_ = add_cluster_dimension(p_, launch_, parts_);
    for (const auto& [tile, d] : rows_.cut) {
      Buffer b = p_.buffer(tile);
      b.shape[d] = number(columns_);
      own_[tile] = p_.new_buffer(std::move(b));
    }
    // There is shared memory for the others to write to once they have begun.
    out_.push_back(sync({.arrive = true}, launch_.location));
    for (const Stmt& s : launch_.body) add(s);
    launch_.body = std::move(out_);
  }

 private:
  static Expr number(int64_t n) { return constant(i32, n); }

  struct Half {
    bool arrive = false, wait = false;
  };
  static Stmt sync(Half half, LocationId at) {
    Sync s;
    s.scope = SyncScope::Cluster, s.arrive_only = half.arrive, s.wait_only = half.wait;
    return make_stmt(std::move(s), at);
  }

  void add(const Stmt& s) {
    if (const auto* n = s.as<Copy>()) return add_copy(*n, s);
    if (const auto* n = s.as<Map>()) return add_map(*n, s);
    if (const auto* n = s.as<Reduce>(); n && joins(*n)) return join(*n, s);
    const bool cut = std::ranges::any_of(used_buffers({s}), [&](BufferId id) { return own_.contains(id); });
    if (!cut) return add_once(s);
    Stmt part = with_buffers({s}, own_)[0];
    if (const auto* n = part.as<Fill>()) part = with<Fill>(*n, part, [&](Fill& f) { narrow(s.as<Fill>()->to, f.to); });
    out_.push_back(match(s->op, [&]<class Op>(const Op& was) {
      if constexpr (CombinesAlong<Op>)
        return with<Op>(*part.as<Op>(), part, [&](Op& n) { narrow(was.from, n.from), narrow(was.to, n.to); });
      else
        return part;
    }));
  }
  // What has no columns: each block does it for itself, but memory is written by one.
  void add_once(const Stmt& s) {
    const bool writes = analysis::writes_memory(p_, s);
    out_.push_back(writes ? make_stmt(If{binary(BinaryOp::Eq, part_, number(0)), {s}, {}}, s->location) : s);
  }

  template <class Op>
  static Stmt with(const Op& op, const Stmt& s, function_ref<void(Op&)> change) {
    Op other = op;
    change(other);
    return make_stmt(std::move(other), s->location);
  }
  // A region of a tile that is cut.
  void narrow(const Region& was, Region& r) const {
    if (const auto d = rows_.dimension_of(was.buffer)) r.extent[*d] = constant(r.extent[*d]->type, columns_);
  }
  // The part's columns of memory.
  void move_to_part(Region& r, size_t d) const {
    const DType type = r.min[d]->type;
    r.min[d] = ir::add(r.min[d], mul(cast(part_, type), constant(type, columns_)));
    r.extent[d] = constant(r.extent[d]->type, columns_);
  }

  void add_copy(const Copy& c, const Stmt& s) {
    const auto from = rows_.dimension_of(c.from.buffer), to = rows_.dimension_of(c.to.buffer);
    if (!from && !to) return add_once(s);
    Copy part = *with_buffers({s}, own_)[0].as<Copy>();
    narrow(c.from, part.from), narrow(c.to, part.to);
    if (!from) move_to_part(part.from, across(c.to, *to, c.from));
    if (!to) move_to_part(part.to, across(c.from, *from, c.to));
    out_.push_back(make_stmt(std::move(part), s->location));
  }
  static size_t across(const Region& tile, size_t d, const Region& memory) {
    return static_cast<size_t>(analysis::dimension_across(tile, d, memory));
  }

  // Columns of tiles are counted from the part's first, all others as before.
  void add_map(const Map& m, const Stmt& s) {
    const auto columns = rows_.columns_of(m);
    if (!columns) return add_once(s);
    Map part = m;
    const auto at = static_cast<size_t>(std::ranges::find(m.vars, *columns) - m.vars.begin());
    const DType type = p_.var(*columns).type;
    part.extents[at] = constant(m.extents[at]->type, columns_);
    const Expr own = var(*columns, type);
    const Expr all = ir::add(own, mul(cast(part_, type), constant(type, columns_)));
    part.body = substitute(m.body, {{*columns, all}});
    part.body = rewrite_exprs(part.body, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      const auto d = n ? rows_.dimension_of(n->buffer) : std::nullopt;
      if (!d) return std::nullopt;
      return load(own_.at(n->buffer), inside(n->indices, *d, own), e->type);
    });
    part.body = rewrite(part.body, [&](const Stmt& inner) -> std::optional<Body> {
      const auto place = [&](auto op) -> std::optional<Body> {
        const auto d = rows_.dimension_of(op.to.buffer);
        if (!d) return std::nullopt;
        op.to = {own_.at(op.to.buffer), inside(op.to.indices, *d, own)};
        return Body{make_stmt(std::move(op), inner->location)};
      };
      if (const auto* n = inner.as<Store>()) return place(*n);
      if (const auto* n = inner.as<Atomic>()) return place(*n);
      return std::nullopt;
    });
    out_.push_back(make_stmt(std::move(part), s->location));
  }
  static std::vector<Expr> inside(std::vector<Expr> indices, size_t d, const Expr& column) {
    indices[d] = column;
    return indices;
  }

  // ---- reductions along the columns
  bool joins(const Reduce& r) const {
    const auto d = rows_.dimension_of(r.from.buffer);
    return d && static_cast<int64_t>(*d) == r.dim;
  }
  // Each block tells all of them what its part has, each at a place of its own, and they join the parts in one order:
  // the result has the same bits in each.
  void join(const Reduce& r, const Stmt& s) {
    const LocationId at = s->location;
    const Buffer to = p_.buffer(r.to.buffer);
    Buffer own = to;
    own.name += "_part", own.space = Space::Fragment;
    const BufferId found = p_.new_buffer(std::move(own));
    Reduce part = *with_buffers({s}, own_)[0].as<Reduce>();
    narrow(r.from, part.from);
    part.to = whole(found, p_), part.clear = true;
    out_.push_back(make_stmt(std::move(part), at));

    Buffer of_all;
    of_all.name = to.name + "_of_parts", of_all.type = to.type, of_all.space = Space::Shared;
    of_all.shape = to.shape, of_all.launch = to.launch, of_all.location = to.location;
    of_all.shape.insert(of_all.shape.begin(), number(parts_));
    const BufferId parts = p_.new_buffer(of_all);
    if (!std::exchange(have_begun_, true)) out_.push_back(sync({.wait = true}, at));
    for (int64_t block = 0; block < parts_; ++block) {
      Buffer there = of_all;
      there.name += "_there", there.root = parts, there.cta = number(block);
      Copy c;
      c.from = whole(found, p_), c.to = whole(p_.new_buffer(std::move(there)), p_);
      c.to.min[0] = part_, c.to.extent[0] = number(1);
      out_.push_back(make_stmt(std::move(c), at));
    }
    out_.push_back(sync({}, at));

    Map m = map_over(p_, to.shape);
    const std::vector<Expr> point = point_of(m);
    const auto of = [&](int64_t block) {
      std::vector<Expr> place = point;
      place.insert(place.begin(), number(block));
      return load(parts, std::move(place), to.type);
    };
    Expr value = r.clear ? of(0) : load(r.to.buffer, point, to.type);
    for (int64_t block = r.clear ? 1 : 0; block < parts_; ++block)
      value = combine(r.op, value, of(block), r.nan_propagate);
    m.body.push_back(make_stmt(Store{{r.to.buffer, point}, value}, at));
    out_.push_back(make_stmt(std::move(m), at));
  }

  TileProgram& p_;
  Launch& launch_;
  const int64_t parts_;
  const analysis::SharedRows rows_;
  const int64_t columns_;             // of a part
  Expr part_;                         // the number of the block in its cluster
  std::map<BufferId, BufferId> own_;  // what a block has of a tile
  bool have_begun_ = false;           // blocks know that the others of the cluster have
  Body out_;
};

}  // namespace

void share_rows(const plan::Plan& plan, TileProgram& program, Launch& launch) {
  std::string why;
  auto rows = analysis::rows_to_share(program, launch, why);
  check_internal(rows.has_value(), "rows are shared that cannot be: {}", why);
  const int64_t parts = plan.work.uses.front().number;
  launch.threads[0] = plan::fewest_threads(program, launch, parts);
  Sharer(program, launch, parts, std::move(*rows)).run();
}

}  // namespace tilewright::passes
