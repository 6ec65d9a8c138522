#include "passes/tile/accumulators.h"

#include "analysis/accessed.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/lowering.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/settle_plan.h"

namespace tilewright::passes {

using namespace ir;
using analysis::constants;
using analysis::followed;
using analysis::writes_whole;

namespace {

// Whether a map has every element that it touches at its own point: then whatever holds the tile may be in registers.
bool is_pointwise(const Map& m, BufferId c, const ProgramTables& p) {
  bool all = true;
  const auto at = [&](BufferId id, const std::vector<Expr>& indices) {
    if (p.root(id) != c) return;
    const auto box = id == c ? followed(indices, m.vars) : std::nullopt;
    all = all && box && m.vars.size() == indices.size() && std::ranges::is_sorted(box->dims) &&
          box->is_whole(constants(m.extents), constants(p.buffer(c).shape));
  };
  walk(m.body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>()) at(n->to.buffer, n->to.indices);
    if (const auto* n = s.as<Atomic>()) all = all && p.root(n->to.buffer) != c;
  });
  walk_exprs(m.body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>()) at(n->buffer, n->indices);
  });
  return all && !analysis::names_as_a_whole(m.body, c);
}

// A tile to which products are added has a fragment of its own, which holds it all along. Statements that need the tile
// where it was find it there: it is copied in front of the first of them that reads it, and back behind those that
// write it.
class Accumulator {
 public:
  // `maps_too`: what works on the tile point by point is done with the fragment, as fills and products are.
  Accumulator(TileProgram& p, BufferId c, BufferId own, bool maps_too) : p_(p), c_(c), own_(own), maps_too_(maps_too) {}

  // None: a statement needs both.
  std::optional<Body> run(const Body& body) {
    Body out = in_order(body);
    return fits_ ? std::optional(std::move(out)) : std::nullopt;
  }

 private:
  bool touches(const Body& body) const { return used_roots(body, p_).contains(c_); }
  bool is_all(const Region& r) const { return r.buffer == c_ && is_whole(r, p_.buffer(c_)); }
  bool mentions(const Expr& e) const {
    bool found = false;
    walk(e, [&](const Expr& x) {
      const auto* load = x.as<Load>();
      const auto* address = x.as<Address>();
      found = found || (load && p_.root(load->buffer) == c_) || (address && p_.root(address->buffer) == c_);
    });
    return found;
  }
  bool mentions(const Stmt& s) const {
    bool found = false;
    for_each_expr(s, [&](const Expr& e) { found = found || mentions(e); });
    return found;
  }
  bool multiplies(const Body& body) const {
    bool found = false;
    walk(body, [&](const Stmt& x) { found = found || (x.as<Gemm>() && x.as<Gemm>()->c.buffer == c_); });
    return found;
  }
  bool changes(const Body& body) const { return changed_roots(body, p_).contains(c_); }

  // Whether all that a tile operation does with the tile can be done with the fragment.
  bool is_of_fragment(const Stmt& s) const {
    const auto elsewhere = [&](const Region& r) { return p_.root(r.buffer) != c_; };
    if (const auto* n = s.as<Fill>()) return is_all(n->to) && !mentions(s);
    if (const auto* n = s.as<Gemm>())
      return is_all(n->c) && n->completion.immediate() && elsewhere(n->a) && elsewhere(n->b) &&
             !(n->is_sparse() && !elsewhere(n->metadata)) && !mentions(s);
    if (!maps_too_) return false;
    if (const auto* n = s.as<Map>()) return is_pointwise(*n, c_, p_);
    if (const auto* n = s.as<Reduce>()) return is_all(n->from) && elsewhere(n->to) && !mentions(s);
    if (const auto* n = s.as<Copy>())
      return n->completion.immediate() && n->combine == ir::Combine::None && !n->im2col.present() && !mentions(s) &&
             ((is_all(n->from) && elsewhere(n->to)) || (is_all(n->to) && elsewhere(n->from)));
    return false;
  }
  bool has_tile_op(const Body& body) const {
    bool found = false;
    walk(body, [&](const Stmt& s) { found = found || (is_tile_op(s) && touches({s})); });
    return found;
  }
  // Whether its statements are gone through one by one: products are among them, or only some runs come by, and all
  // threads do or none does.
  bool is_opened(const Stmt& s) const {
    if (s.as<If>() && has_tile_op({s})) return true;
    bool found = false;
    walk({s}, [&](const Stmt& x) { found = found || (touches({x}) && is_tile_op(x) && is_of_fragment(x)); });
    return found && (s.as<For>() || s.as<If>());
  }

  Body in_order(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      if (may_jump({s})) give_back(s->location, out);
      if (!touches({s}))
        out.push_back(s);
      else if (is_of_fragment(s))
        add(s, out);
      else if (is_opened(s))
        out.push_back(opened(s, out));
      else
        visit(s, out);
      touched_ = touched_ || touches({s});
    }
    if (!in.empty()) give_back(in.back()->location, out);
    return out;
  }
  // A statement of which parts are the fragment's, others the tile's.
  Stmt opened(const Stmt& s, Body& out) {
    give_back(s->location, out);
    if (mentions(s)) bring(s->location, out);
    const bool before = is_there_, outside = in_loop_;
    in_loop_ = in_loop_ || s.as<For>();
    Stmt in_parts = with_bodies(s, [&](const Body& body) {
      is_there_ = before && !s.as<For>();
      return in_order(body);
    });
    in_loop_ = outside, is_there_ = false;
    return in_parts;
  }
  void add(const Stmt& s, Body& out) {
    give_back(s->location, out);
    is_there_ = is_there_ && !changes({s});
    if (const auto* n = s.as<Fill>()) {
      out.push_back(make_stmt(Fill{whole(own_, p_), cast(n->value, p_.buffer(own_).type)}, s->location));
      return;
    }
    append(out, with_buffers({s}, {{c_, own_}}));
    if (s.as<Gemm>()) round(s->location, out);
  }
  // What needs the tile where it was.
  void visit(const Stmt& s, Body& out) {
    const bool writes = changes({s});
    fits_ = fits_ && !multiplies({s}) && !(writes && may_jump({s}));
    if (!writes_whole(s, c_, p_) || analysis::read_by({s}, p_).contains(c_)) bring(s->location, out);
    out.push_back(s);
    is_ahead_ = is_ahead_ || writes;
  }
  // The tile holds what the fragment does.
  void bring(LocationId at, Body& out) {
    if (is_there_ || is_ahead_ || (!touched_ && !in_loop_)) return;
    out.push_back(move(own_, c_, at));
    is_there_ = true;
  }
  // The fragment holds what the tile does.
  void give_back(LocationId at, Body& out) {
    if (!std::exchange(is_ahead_, false)) return;
    out.push_back(move(c_, own_, at));
    is_there_ = true;
  }
  // A product rounds to the tile's type once.
  void round(LocationId at, Body& out) {
    const DType type = p_.buffer(own_).type, narrow = p_.buffer(c_).type;
    if (type == narrow) return;
    Map m = map_over(p_, p_.buffer(own_).shape);
    const Expr value = cast(cast(load(own_, point_of(m), type), narrow), type);
    m.body = {make_stmt(Store{{own_, point_of(m)}, value}, at)};
    out.push_back(make_stmt(std::move(m), at));
  }
  // Element by element: what nothing has written stays so.
  Stmt move(BufferId from, BufferId to, LocationId at) {
    Map m = map_over(p_, p_.buffer(to).shape);
    const Expr value = cast(load(from, point_of(m), p_.buffer(from).type), p_.buffer(to).type);
    m.body = {make_stmt(Store{{to, point_of(m)}, value}, at)};
    return make_stmt(std::move(m), at);
  }

  TileProgram& p_;
  const BufferId c_, own_;
  const bool maps_too_;
  bool is_there_ = false;  // the tile holds what the fragment does
  bool is_ahead_ = false;  // the tile was written since, the fragment not yet
  bool touched_ = false, in_loop_ = false;
  bool fits_ = true;
};

// Whether statements are done one after the other by all threads of the block.
bool is_in_order(const Launch& launch) {
  bool found = false;
  walk(launch.body, [&](const Stmt& s) {
    const auto* copy = s.as<Copy>();
    found = found || s.as<Role>() || s.as<Arrive>() || s.as<Wait>() || s.as<Return>() ||
            (copy && !copy->completion.immediate());
  });
  return !found;
}

// Fragments and shared tiles to which products are added that no matrix instruction does as it stands.
std::set<BufferId> slow_accumulators(const ProgramTables& p, const Launch& launch, const Placement& placement) {
  std::set<BufferId> out;
  walk(launch.body, [&](const Stmt& s) {
    const auto* g = s.as<Gemm>();
    if (!g || placement.choice_of(s).has_instruction()) return;
    const Buffer& c = p.buffer(g->c.buffer);
    const bool on_chip = c.space == Space::Fragment || (c.space == Space::Shared && c.strides.empty());
    if (on_chip && !c.is_view() && c.rank() == 2 && !c.reducer && !c.type.is_packed() &&
        c.layout.kind == LayoutHint::None)
      out.insert(g->c.buffer);
  });
  return out;
}

bool have_instruction(const Launch& launch, BufferId c, const Placement& placement) {
  bool all = true;
  walk(launch.body, [&](const Stmt& s) {
    const auto* g = s.as<Gemm>();
    all = all && (!g || g->c.buffer != c || placement.choice_of(s).has_instruction());
  });
  return all;
}

// Whether the matrix instruction is had this way; else all stays as it is.
bool with_own_fragment(TileProgram& program, size_t launch, BufferId c, bool maps_too,
                       const target::GpuTarget& target) {
  TileProgram with = program;
  Buffer own = with.buffer(c);
  own.name += "_sum", own.type = accumulator(own.type), own.space = Space::Fragment;
  const BufferId sum = with.new_buffer(std::move(own));
  auto body = Accumulator(with, c, sum, maps_too).run(with.launches[launch].body);
  if (!body) return false;
  with.launches[launch].body = std::move(*body);
  TileProgram scratch = with;
  const Placement after = foreseen_placement(scratch, launch, target);
  if (!have_instruction(scratch.launches[launch], sum, after)) return false;
  program = std::move(with);
  return true;
}

}  // namespace

void accumulate_in_registers(TileProgram& program, const target::GpuTarget& target) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    bool multiplies = false;
    walk(program.launches[i].body, [&](const Stmt& s) { multiplies = multiplies || s.as<Gemm>(); });
    if (!multiplies || !is_in_order(program.launches[i])) continue;
    TileProgram scratch = program;
    const Placement before = foreseen_placement(scratch, i, target);
    for (BufferId c : slow_accumulators(scratch, scratch.launches[i], before)) {
      const bool alike =
          program.buffer(c).space == Space::Fragment && accumulator(program.buffer(c).type) == program.buffer(c).type;
      if (alike && with_own_fragment(program, i, c, true, target)) continue;
      with_own_fragment(program, i, c, false, target);
    }
  }
}

}  // namespace tilewright::passes
