#include "passes/tile/products_in_parts.h"

#include "analysis/accessed.h"
#include "analysis/live_registers.h"
#include "analysis/own_schedule.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"
#include "passes/tile/accumulator_room.h"
#include "target/wgmma.h"

namespace tilewright::passes {

using namespace ir;
using analysis::accessed_by;
using analysis::Buffers;
using analysis::meet;
using analysis::read_by;
using analysis::written_by;

namespace {

constexpr int64_t kOtherRegisters = 32;  // of a thread, beside accumulators: with fewer some spill, and products wait
constexpr int64_t kFewSpilled = 32;      // registers that cost less than products that are made twice
constexpr int64_t kUnit = 16;            // columns of a part, the depth of an instruction's step
constexpr int64_t kFewest = 32;          // columns at a time: operands come twice for each then
constexpr int64_t kWide = 128;           // columns of an instruction that reads shared memory no faster than it can
constexpr size_t kMostPhases = 2;        // columns are made so often
constexpr size_t kRows = 0, kColumns = 1;

bool clash(const Body& a, const Body& b, const ProgramTables& p) {
  return meet(written_by(a, p), accessed_by(b, p), p) || meet(written_by(b, p), accessed_by(a, p), p);
}

class Parts {
 public:
  Parts(TileProgram& p, const Launch& launch, const target::GpuTarget& target)
      : p_(p),
        launch_(launch),
        threads_(launch.thread_count()),
        room_(most_registers(launch, target) - kOtherRegisters) {}

  std::optional<Body> operator()(const Stmt& s) {
    const auto* loop = s.as<For>();
    if (done_ || !loop || loop->kind != LoopKind::Pipelined || may_jump(loop->body)) return std::nullopt;
    for (const Stmt& x : loop->body) {
      const auto* g = x.as<Gemm>();
      if (!g || !is_cuttable(*g)) continue;
      for (const size_t dim : dims_of(*g))
        if (auto body = in_parts(*loop, *g, dim)) {
          For f = *loop;
          f.body = std::move(*body);
          done_ = true;
          return Body{make_stmt(std::move(f), s->location)};
        }
    }
    return std::nullopt;
  }

 private:
  enum class Kind : uint8_t {
    Apart,  // has nothing to do with the columns
    Makes,  // some columns from as many
    Takes,  // all columns to one result
    Other,
  };
  struct Part {
    int64_t first, count;
  };

  // ---- which columns, or rows
  // The turn with the product's result in parts along the dimension; none: there is room, or no way.
  std::optional<Body> in_parts(const For& loop, const Gemm& g, size_t dim) {
    const size_t buffers = p_.buffers.size();
    dim_ = dim, made_.clear();
    extent_ = *constant_int(p_.buffer(g.c.buffer).shape[dim]);
    if (find_cut(loop, g.c.buffer) && choose_parts(g)) {
      size_t count = 0;
      auto body = phases(loop.body, count);
      if (body && count <= (taken() > room_ + kFewSpilled ? kMostPhases : 1)) return body;
    }
    p_.buffers.erase(p_.buffers.begin() + static_cast<std::ptrdiff_t>(buffers), p_.buffers.end());
    return std::nullopt;
  }
  bool is_cuttable(const Gemm& g) const {
    const Buffer& c = p_.buffer(g.c.buffer);
    return c.space == Space::Fragment && c.rank() == 2 && c.type.bits == 32 && is_whole(g.c, c);
  }
  // Rows only where each warpgroup keeps those of an instruction, and parts of columns would be narrower than the rows
  // are long.
  std::vector<size_t> dims_of(const Gemm& g) const {
    const int64_t rows = *constant_int(p_.buffer(g.c.buffer).shape[kRows]);
    const int64_t columns = *constant_int(p_.buffer(g.c.buffer).shape[kColumns]);
    const bool whole = threads_ % target::kWarpgroupThreads == 0;
    if (columns > kWide || !whole || rows % (2 * rows_of_instructions()) != 0) return {kColumns};
    return {kRows, kColumns};
  }
  int64_t rows_of_instructions() const { return target::kWgmmaRows * (threads_ / target::kWarpgroupThreads); }
  // Registers of a thread that accumulators take, and what their parts are added to.
  int64_t taken() const {
    Buffers all = accumulators_of(launch_);
    all.insert(held_.begin(), held_.end());
    return analysis::bits_of_fragments(all, p_) / 32 / threads_;
  }
  // How many columns, or rows, of the product's result have room at a time.
  bool choose_parts(const Gemm& g) {
    const Buffer& c = p_.buffer(g.c.buffer);
    const int64_t other = *constant_int(c.shape[1 - dim_]);
    const int64_t unit = dim_ == kColumns ? kUnit : rows_of_instructions();
    const int64_t left = room_ - (taken() - extent_ * other / threads_);
    const int64_t most = left * threads_ / other / unit, units = extent_ / unit;
    if (taken() <= room_ || most * unit < kFewest || most >= units || extent_ % unit != 0) return false;
    const int64_t parts = (units + most - 1) / most;
    parts_.clear();
    for (int64_t i = 0, first = 0; i < parts; ++i) {
      const int64_t count = (units + parts - 1 - i) / parts * unit;  // alike, but for a unit
      parts_.push_back({first, count});
      first += count;
    }
    return true;
  }
  // Whether parts of the fragment can be told apart by the dimension that is cut.
  bool is_plain(BufferId id) const {
    const Buffer& b = p_.buffer(id);
    return b.space == Space::Fragment && b.rank() == 2 && !b.is_view() && !b.reducer &&
           b.layout.kind == LayoutHint::None && constant_int(b.shape[dim_]) == extent_ &&
           std::ranges::none_of(p_.buffers, [&](const Buffer& x) { return x.is_view() && x.root == id; });
  }
  // Whether the fragment is the loop's alone, and made anew in every turn.
  bool is_own(BufferId id, const For& loop) const {
    if (!is_plain(id) || analysis::accesses_of(launch_.body, id, p_) !=
                             analysis::accesses_of({make_stmt(For(loop), LocationId{})}, id, p_))
      return false;
    const auto first =
        std::ranges::find_if(loop.body, [&](const Stmt& s) { return accessed_by({s}, p_).contains(id); });
    return !read_by({*first}, p_).contains(id) && analysis::writes_whole(*first, id, p_);
  }
  // The fragments that have the columns of the first, and those that maps add columns to, which stay whole.
  bool find_cut(const For& loop, BufferId first) {
    cut_ = {first}, held_.clear();
    if (!is_own(first, loop)) return false;
    for (bool more = true; more;) {
      more = false;
      for (const Stmt& s : loop.body) {
        const auto* map = s.as<Map>();
        const auto* copy = s.as<Copy>();
        if ((!map && !copy) || !meet(read_by({s}, p_), cut_, p_)) continue;
        for (BufferId id : written_by({s}, p_)) {
          const Buffer& b = p_.buffer(id);
          if (b.space != Space::Fragment || b.rank() != 2 || cut_.contains(id) || held_.contains(id)) continue;
          const bool own = is_own(id, loop);
          if (!own && (copy || !is_plain(id))) return false;
          (own ? cut_ : held_).insert(id), more = true;
        }
      }
    }
    return std::ranges::none_of(loop.body, [&](const Stmt& s) { return kind_of(s) == Kind::Other; });
  }
  bool is_cut(const Region& r) const { return cut_.contains(r.buffer); }
  bool is_all(const Region& r) const { return is_whole(r, p_.buffer(r.buffer)); }
  Kind kind_of(const Stmt& s) const {
    if (!meet(accessed_by({s}, p_), cut_, p_)) return Kind::Apart;
    if (const auto* n = s.as<Map>()) {
      const Buffers to = written_by({s}, p_);
      const bool takes = meet(to, held_, p_);
      if (!by_parts(*n) || (takes && meet(to, cut_, p_))) return Kind::Other;
      return takes ? Kind::Takes : Kind::Makes;
    }
    if (const auto* n = s.as<Fill>()) return is_all(n->to) ? Kind::Makes : Kind::Other;
    if (const auto* n = s.as<Copy>()) {
      const bool plain = n->completion.immediate() && n->combine == ir::Combine::None && !n->im2col.present();
      return plain && is_cut(n->from) && is_cut(n->to) && is_all(n->from) && is_all(n->to) ? Kind::Makes : Kind::Other;
    }
    if (const auto* n = s.as<Reduce>()) {
      const Buffer& to = p_.buffer(n->to.buffer);
      const bool joins =
          dim_ == kColumns && is_cut(n->from) && !is_cut(n->to) && is_all(n->from) && is_all(n->to) && n->dim == 1;
      return joins && to.type.bits == 32 ? Kind::Takes : Kind::Other;
    }
    const auto* g = s.as<Gemm>();
    if (!g || !g->completion.immediate() || g->is_sparse() || is_cut(g->b)) return Kind::Other;
    const Region& cut = dim_ == kColumns ? g->b : g->a;  // with the result
    if (!is_all(cut) || (dim_ == kRows && p_.buffer(p_.root(g->a.buffer)).space == Space::Fragment)) return Kind::Other;
    if (is_cut(g->c)) return !is_cut(g->a) && is_all(g->c) ? Kind::Makes : Kind::Other;
    if (dim_ == kRows) return Kind::Other;
    const bool adds = is_cut(g->a) && is_all(g->a) && !g->transpose_a && (!g->clear || constant_int(g->clear));
    return adds ? Kind::Takes : Kind::Other;
  }
  // A Map over rows and columns that reads and writes its own elements of what is cut and of what columns are added to,
  // and writes nothing else.
  bool by_parts(const Map& n) const {
    if (n.vars.size() != 2 || constant_int(n.extents[dim_]) != extent_) return false;
    bool fits = true;
    const auto element = [&](BufferId id, const std::vector<Expr>& index) {
      if (!cut_.contains(id) && !held_.contains(id)) return false;
      for (size_t d = 0; d < 2; ++d) {
        const auto* v = index[d].as<Var>();
        fits = fits && v && v->id == n.vars[d];
      }
      return true;
    };
    walk(n.body, [&](const Stmt& s) {
      const auto* store = s.as<Store>();
      fits = fits && (s.as<Let>() || (store && element(store->to.buffer, store->to.indices)));
    });
    walk_exprs(n.body, [&](const Expr& e) {
      if (const auto* load = e.as<Load>()) element(load->buffer, load->indices);
    });
    return fits;
  }

  // ---- phases: each goes over all columns, part after part
  // The turn; none: the columns would have to be made more often, or of what has changed since.
  std::optional<Body> phases(const Body& turn, size_t& count) {
    Body out, phase, later;
    const auto end_phase = [&] {
      if (!phase.empty()) ++count;
      for (const Part& part : parts_) append(out, of_part(phase, part));
      append(out, later);
      phase.clear(), later.clear();
    };
    for (size_t i = 0; i < turn.size(); ++i) {
      const Stmt& s = turn[i];
      if (kind_of(s) == Kind::Apart) {
        const bool may_come_before = !clash({s}, phase, p_) && !clash({s}, later, p_) && !names_meet(s, later);
        (may_come_before ? out : later).push_back(s);
        continue;
      }
      if (clash({s}, later, p_) || names_meet(s, later) || takes_result(s, phase)) end_phase();
      if (!make_again(s, turn, i, phase) || is_read_by_makers(s, phase)) return std::nullopt;
      phase.push_back(s);
    }
    end_phase();
    return out;
  }
  static bool names_meet(const Stmt& s, const Body& later) {
    const std::set<VarId> bound = bound_vars(later);
    return std::ranges::any_of(used_vars(Body{s}), [&](VarId v) { return bound.contains(v); });
  }
  // Whether the statement has to do with a result that is whole behind all parts of the phase alone.
  bool takes_result(const Stmt& s, const Body& phase) const {
    Buffers results;
    for (const Stmt& x : phase)
      if (kind_of(x) == Kind::Takes) results.merge(written_by({x}, p_));
    return meet(accessed_by({s}, p_), results, p_);
  }
  // Whether the statement adds a part to a result that what makes the next part reads: it would find the sum.
  bool is_read_by_makers(const Stmt& s, const Body& phase) const {
    if (kind_of(s) != Kind::Takes) return false;
    Buffers results = written_by({s}, p_);
    std::erase_if(results, [&](BufferId id) { return held_.contains(id); });  // of its own columns alone
    return std::ranges::any_of(
        phase, [&](const Stmt& x) { return kind_of(x) == Kind::Makes && meet(read_by({x}, p_), results, p_); });
  }
  // Puts what makes the columns that the statement reads, and the phase has not made, into the phase.
  bool make_again(const Stmt& s, const Body& turn, size_t at, Body& phase) const {
    Buffers wanted;
    for (BufferId id : read_by({s}, p_))
      if (cut_.contains(id) && !written_by(phase, p_).contains(id)) wanted.insert(id);
    std::vector<size_t> makers;
    for (size_t i = at; i-- > 0 && !wanted.empty();) {
      if (kind_of(turn[i]) != Kind::Makes || !meet(written_by({turn[i]}, p_), wanted, p_)) continue;
      for (BufferId id : read_by({turn[i]}, p_))
        if (cut_.contains(id)) wanted.insert(id);
      makers.insert(makers.begin(), i);
    }
    for (size_t i : makers) {
      Buffers sources = read_by({turn[i]}, p_);
      for (BufferId id : cut_) sources.erase(id);
      const Body since(turn.begin() + static_cast<std::ptrdiff_t>(i), turn.begin() + static_cast<std::ptrdiff_t>(at));
      if (meet(written_by(since, p_), sources, p_)) return false;
      phase.push_back(turn[i]);
    }
    return true;
  }

  // ---- a part
  BufferId part_of(BufferId id, int64_t count) {
    const auto known = made_.find({id, count});
    if (known != made_.end()) return known->second;
    Buffer b = p_.buffer(id);
    b.name += "_part", b.shape[dim_] = constant(b.shape[dim_]->type, count);
    return made_[{id, count}] = p_.new_buffer(std::move(b));
  }
  Region part_of(const Region& r, const Part& part) { return whole(part_of(r.buffer, part.count), p_); }
  static Region cut_at(Region r, size_t dim, const Part& part) {
    r.min[dim] = add(r.min[dim], constant(r.min[dim]->type, part.first));
    r.extent[dim] = constant(r.extent[dim]->type, part.count);
    return r;
  }
  Body of_part(const Body& phase, const Part& part) {
    Body out;
    const bool first = part.first == 0;
    const auto keep = [&](auto op, const Stmt& s) { out.push_back(make_stmt(std::move(op), s->location)); };
    for (const Stmt& s : phase) {
      if (const auto* n = s.as<Map>()) {
        append(out, renamed(p_, {make_stmt(of_part(*n, part), s->location)}));
      } else if (const auto* n = s.as<Fill>()) {
        Fill f = *n;
        f.to = part_of(n->to, part);
        keep(std::move(f), s);
      } else if (const auto* n = s.as<Copy>()) {
        Copy c = *n;
        c.from = part_of(n->from, part), c.to = part_of(n->to, part);
        keep(std::move(c), s);
      } else if (const auto* n = s.as<Reduce>()) {
        Reduce r = *n;
        r.from = part_of(n->from, part), r.clear = n->clear && first;
        keep(std::move(r), s);
      } else {
        Gemm g = *s.as<Gemm>();
        const size_t rank = g.b.min.size();
        if (is_cut(g.c)) {
          g.c = part_of(g.c, part);
          if (dim_ == kColumns)
            g.b = cut_at(g.b, rank - (g.transpose_b ? 2 : 1), part);
          else
            g.a = cut_at(g.a, g.a.min.size() - (g.transpose_a ? 1 : 2), part);
        } else {
          g.a = part_of(g.a, part), g.b = cut_at(g.b, rank - (g.transpose_b ? 1 : 2), part);
          if (!first) g.clear = {};
        }
        keep(std::move(g), s);
      }
    }
    return out;
  }
  Map of_part(const Map& n, const Part& part) {
    Map out = n;
    const VarId along = n.vars[dim_];
    const DType type = p_.var(along).type;
    const Expr own = var(along, type);
    out.extents[dim_] = constant(n.extents[dim_]->type, part.count);
    out.body = substitute(n.body, {{along, add(own, constant(type, part.first))}});
    const auto place = [&](std::vector<Expr> index) {
      index[dim_] = own;
      return index;
    };
    out.body = rewrite_exprs(out.body, [&](const Expr& e) -> std::optional<Expr> {
      const auto* load = e.as<Load>();
      if (!load || !cut_.contains(load->buffer)) return std::nullopt;
      return ir::load(part_of(load->buffer, part.count), place(load->indices), e->type);
    });
    out.body = rewrite(out.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* store = s.as<Store>();
      if (!store || !cut_.contains(store->to.buffer)) return std::nullopt;
      const Element to{part_of(store->to.buffer, part.count), place(store->to.indices)};
      return Body{make_stmt(Store{to, store->value}, s->location)};
    });
    return out;
  }

  TileProgram& p_;
  const Launch& launch_;
  const int64_t threads_;
  const int64_t room_;  // registers of a thread for accumulators
  bool done_ = false;   // one loop's
  size_t dim_ = kColumns;
  int64_t extent_ = 0;  // of what is cut, along it
  std::vector<Part> parts_;
  Buffers cut_, held_;
  std::map<std::pair<BufferId, int64_t>, BufferId> made_;  // by columns
};

}  // namespace

void products_in_parts(TileProgram& program, const target::GpuTarget& target) {
  for (Launch& launch : program.launches) {
    if (!analysis::why_as_written(launch).empty() || analysis::has_own_layouts(program, launch)) continue;
    Parts parts(program, launch, target);
    launch.body = rewrite(launch.body, [&](const Stmt& s) { return parts(s); });
  }
}

}  // namespace tilewright::passes
