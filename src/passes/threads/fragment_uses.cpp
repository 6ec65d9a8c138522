#include "passes/threads/fragment_uses.h"

#include "analysis/accessed.h"
#include "analysis/divisibility.h"
#include "analysis/map_points.h"
#include "analysis/slope.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/standard.h"
#include "passes/threads/annotated_layout.h"
#include "passes/threads/maps_of_threads.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::Followed;
using analysis::followed;

namespace {

std::optional<std::vector<int64_t>> constants(const std::vector<Expr>& list) {
  std::vector<int64_t> out;
  for (const Expr& e : list) {
    const auto c = constant_int(e);
    if (!c || *c <= 0) return std::nullopt;
    out.push_back(*c);
  }
  return out;
}

constexpr int kVectorBits = 128;

struct ElementAccess {
  BufferId buffer;
  const std::vector<Expr>* indices;
  bool writes = false;
};
std::vector<ElementAccess> accesses(const Body& body) {
  std::vector<ElementAccess> out;
  walk(body, [&](const Stmt& s) {
    if (const auto* n = s.as<Store>()) out.push_back({n->to.buffer, &n->to.indices, true});
    if (const auto* n = s.as<Atomic>()) out.push_back({n->to.buffer, &n->to.indices, true});
  });
  walk_exprs(body, [&](const Expr& e) {
    if (const auto* n = e.as<Load>()) out.push_back({n->buffer, &n->indices, false});
  });
  return out;
}

class UseWalk {
 public:
  UseWalk(const TileProgram& p, const Launch& launch, const analysis::Uniformity& u, const target::GpuTarget& target,
          Findings& findings)
      : p_(p), launch_(launch), u_(u), target_(target), found_(findings), of_threads_(maps_of_threads(p, launch, u)) {
    walk(launch.body, [&](const Stmt& s) { visit(s); });
  }
  FragmentUses out;

 private:
  bool is_fragment(BufferId id) const { return p_.buffer(id).space == Space::Fragment; }
  bool is_whole(const Region& r) const { return ir::is_whole(r, p_.buffer(r.buffer)); }
  bool may_be_in_registers(BufferId id) const { return passes::may_be_in_registers(p_, id, found_); }
  void to_memory(BufferId id, std::string why) { found_.to_memory(p_.root(id), std::move(why)); }
  void region_to_memory(const Region& r, std::string why) {
    if (is_fragment(r.buffer)) to_memory(r.buffer, std::move(why));
  }

  // A view that has all elements of its fragment, in order.
  bool is_reshaped(const Buffer& view) const {
    const Buffer& whole = p_.buffer(view.root);
    const auto elements = [](const Buffer& b) {
      int64_t n = 1;
      for (const Expr& e : b.shape) n *= constant_int(e).value_or(0);
      return n;
    };
    return view.type == whole.type && view.strides.empty() && whole.strides.empty() &&
           (!view.offset || constant_int(view.offset) == 0) && elements(view) == elements(whole);
  }

  // ---- nodes
  // The node of a fragment, or none if it lives in memory.
  std::optional<size_t> fragment(BufferId id, const Stmt& at) {
    const Buffer& b = p_.buffer(id);
    if (!may_be_in_registers(id)) return std::nullopt;
    if (b.is_view() && !is_reshaped(b)) return to_memory(id, "it has views of other elements"), std::nullopt;
    if (b.reducer) return to_memory(id, "it is a reducer"), std::nullopt;
    if (b.type.is_packed()) return to_memory(id, "its elements share bytes"), std::nullopt;
    const analysis::ThreadSet& set = u_.executing_set(at);
    auto found = of_fragment_.find(id);
    if (found == of_fragment_.end()) {
      const auto shape = constants(b.shape);
      check_internal(shape.has_value(), "fragment {} has a shape that is not constant", b.name);
      found = of_fragment_.emplace(id, classes_.add({id, {}, *shape, fmt::format("'{}'", b.name)}, set)).first;
      LayoutClass& c = classes_.classes[found->second];
      if (auto layout = annotated_layout(p_, b, *shape, c.threads)) c.annotated = shaped(*layout, c.shape);
      if (b.is_view()) {
        const auto whole = fragment(b.root, at);
        if (!whole) return std::nullopt;
        classes_.reshaped.push_back({*whole, found->second});
      }
    }
    const LayoutClass& c = classes_.classes[found->second];
    if (c.threads != set.count() || c.first_thread != set.begin[0])
      return to_memory(id, "different sets of threads use it"), std::nullopt;
    return found->second;
  }
  size_t points(const Stmt& s, std::vector<int64_t> shape) {
    const SourceLocation& at = p_.location(s->location);
    std::string name = at.known() ? fmt::format("the operation of line {}", at.line) : "an operation";
    return classes_.add({{}, s, std::move(shape), std::move(name)}, u_.executing_set(s));
  }

  // ---- statements
  void visit(const Stmt& s) {
    if (const auto* n = s.as<Map>()) return map(*n, s);
    if (u_.in_map(s)) return;  // the Map has seen it
    if (const auto* n = s.as<Reduce>()) return reduce(*n, s);
    if (const auto* n = s.as<Gemm>()) return gemm(*n, s);
    if (const auto* n = s.as<Copy>()) {
      region_to_memory(n->from, "an asynchronous copy reads it");
      region_to_memory(n->to, "an asynchronous copy writes it");
      return asynchronous(*n, s);
    }
    if (is_tile_op(s))  // one that works on memory
      for (const Effect& e : own_effects_of(s).list)
        region_to_memory(e.region,
                         fmt::format("a {} {} it", name_of(s), e.access == Access::Read ? "reads" : "writes"));
    if (const auto* n = s.as<Print>(); n && n->buffer.valid() && is_fragment(n->buffer))
      to_memory(n->buffer, "it is printed");
    const char* why = "thread code reads or writes it outside of tile operations";
    for_each_expr(s, [&](const Expr& e) {
      walk(e, [&](const Expr& x) {
        if (const auto* n = x.as<Load>(); n && is_fragment(n->buffer)) to_memory(n->buffer, why);
      });
    });
    if (const auto* n = s.as<Store>(); n && is_fragment(n->to.buffer)) to_memory(n->to.buffer, why);
    if (const auto* n = s.as<Atomic>(); n && is_fragment(n->to.buffer)) to_memory(n->to.buffer, why);
  }

  void map(const Map& n, const Stmt& s) {
    const auto shape = constants(n.extents);
    // Points that use what threads differ in are dealt in the language's order, whatever the fragments.
    const bool own_order = !shape || of_threads_.contains(s->id);
    std::optional<size_t> node;
    for (const ElementAccess& a : accesses(n.body)) {
      if (!may_be_in_registers(a.buffer)) continue;
      if (own_order) {
        to_memory(a.buffer, shape ? "a parallel loop over thread-local variables uses it"
                                  : "a parallel loop of dynamic extent uses it");
        continue;
      }
      const auto id = fragment(a.buffer, s);
      if (!id) continue;
      const auto box = followed(*a.indices, n.vars);
      if (!box) {
        to_memory(a.buffer, "it is indexed by more than the variables of a parallel loop");
        continue;
      }
      if (!node) node = points(s, *shape);
      link(*node, *id, *box, a);
    }
    if (own_order) return;
    if (!node) node = points(s, *shape);
    note_memory(*node, n);
  }
  // A Map's points and the box of a fragment that it accesses.
  void link(size_t node, size_t id, const Followed& box, const ElementAccess& access) {
    const std::vector<int64_t>& points = classes_.nodes[node].shape;
    std::vector<int> kept;
    for (int d : box.dims)
      if (d >= 0) kept.push_back(d);
    if (!std::is_sorted(kept.begin(), kept.end())) return to_memory(access.buffer, "it is transposed");
    if (!box.is_whole(points, classes_.nodes[id].shape)) {
      classes_.covers.push_back({id, node, box});
      return;
    }
    bool all = true;
    for (size_t d = 0; d < points.size(); ++d)
      all = all && (points[d] == 1 || std::find(kept.begin(), kept.end(), static_cast<int>(d)) != kept.end());
    if (all && classes_.are_alike(node, id))
      classes_.unite(node, id);
    else
      classes_.follows.push_back({node, id, box.dims, access.writes});
  }
  // What the Map would like for its accesses of memory.
  void note_memory(size_t node, const Map& n) {
    LayoutClass& c = classes_.of(node);
    const std::vector<ElementAccess> all = accesses(n.body);
    const bool on_chip = std::any_of(all.begin(), all.end(), [&](const ElementAccess& a) {
      return p_.buffer(a.buffer).space == Space::Shared && used_vars(a.indices->back()).contains(n.vars.back());
    });
    for (const ElementAccess& a : all) {
      const Buffer& b = p_.buffer(a.buffer);
      if (may_be_in_registers(a.buffer) || b.rank() == 0 || b.space == Space::Local) continue;
      note_neighbours(c, n, a);
      if (!used_vars(a.indices->back()).contains(n.vars.back())) {
        for (const Expr& e : *a.indices) c.apart = c.apart || used_vars(e).contains(n.vars.back());
        continue;
      }
      // What lies apart by a few elements (each point has a vector of its own) is as wide as what lies between.
      const std::optional<int64_t> slope = analysis::slope(a.indices->back(), n.vars.back());
      const int64_t apart = std::max<int64_t>(1, slope.value_or(1));
      const int64_t bits = std::max(8, b.type.storage_bits());
      if (b.space == Space::Global && on_chip && apart * bits > kVectorBits) {
        c.apart = c.global = true;
        continue;
      }
      const int of_vector = static_cast<int>(std::min<int64_t>(bits * apart, 128));
      c.element_bits = std::max(c.element_bits, of_vector);
      if (analysis::has_element_for_each(n, *a.indices)) c.own_bits = std::max(c.own_bits, of_vector);
      if (b.space != Space::Global) continue;
      c.global = true;
      // One element after the other from global memory, a tile on chip still takes as vectors.
      const int64_t aligned = slope == 1 ? aligned_in_rows(b) : kMostLanes;
      if (aligned > 1 || !on_chip) c.aligned = std::min(c.aligned, aligned);
    }
  }
  // Along which dimension memory has the points' elements side by side.
  void note_neighbours(LayoutClass& c, const Map& n, const ElementAccess& a) const {
    const Buffer& b = p_.buffer(a.buffer);
    if (!analysis::has_element_for_each(n, *a.indices) || (!b.strides.empty() && constant_int(b.strides.back()) != 1))
      return;
    size_t place = 0;  // among the class's dimensions
    for (size_t d = 0; d < n.vars.size(); ++d) {
      const bool last = d + 1 == n.vars.size();
      if (constant_int(n.extents[d]) == 1 && !last) continue;
      const auto elsewhere = std::count_if(a.indices->begin(), a.indices->end() - 1,
                                           [&](const Expr& e) { return used_vars(e).contains(n.vars[d]); });
      const int bits = std::max(8, b.type.storage_bits());
      const int64_t slope = analysis::slope_through_casts(a.indices->back(), n.vars[d]).value_or(0);
      // Of what lies apart by a few elements each point may have a vector of its own.
      if (elsewhere == 0 && slope >= 1 && (slope == 1 || (last && slope * bits <= kVectorBits))) {
        LayoutClass::Along& along = (b.space == Space::Global ? c.in_global : c.on_chip)[place];
        along.bits += bits, along.widest = std::max(along.widest, bits);
        if (b.space == Space::Global) along.aligned = std::min(along.aligned, aligned_in_rows(b));
      }
      ++place;
    }
  }
  // The most elements that lie at a multiple of their size in every row; rows of a size not known until the launch are
  // taken to be whole, where nothing says that they are not.
  int64_t aligned_in_rows(const Buffer& b) const {
    int64_t most = kMostLanes;
    const auto at_most = [&](const Expr& pitch) {
      if (constant_int(pitch) || analysis::is_no_multiple(pitch, p_))
        most = std::min(most, analysis::power_of_two_divisor(pitch, p_));
    };
    if (b.strides.empty() && b.rank() > 1) at_most(b.shape.back());
    for (size_t d = 0; d + 1 < b.strides.size(); ++d) at_most(b.strides[d]);
    return most;
  }

  void asynchronous(const Copy& n, const Stmt& s) {
    std::vector<int64_t> shape;
    for (const Expr& e : n.to.extent) {
      const auto extent = constant_int(e);
      check_internal(extent.has_value(), "an asynchronous copy of dynamic extent");
      if (*extent != 1) shape.push_back(*extent);
    }
    if (shape.empty()) shape.push_back(1);
    LayoutClass& c = classes_.of(points(s, shape));
    c.element_bits = c.own_bits = std::max(8, p_.buffer(n.to.buffer).type.storage_bits());
    c.by_queue = n.completion.queue == Queue::CpAsync;
    if (const Buffer& from = p_.buffer(n.from.buffer); from.space == Space::Global)
      c.aligned = std::min(c.aligned, aligned_in_rows(from));
  }

  void reduce(const Reduce& n, const Stmt& s) {
    std::optional<size_t> from, to;
    if (is_fragment(n.from.buffer)) {
      if (is_whole(n.from))
        from = fragment(n.from.buffer, s);
      else
        to_memory(n.from.buffer, "part of it is reduced");
    }
    if (!from) {
      const auto shape = constants(n.from.extent);
      check_internal(shape.has_value(), "a reduction over extents that are not constant");
      from = points(s, *shape);
      LayoutClass& of_points = classes_.of(*from);
      if (n.dim + 1 == static_cast<int64_t>(shape->size()))
        of_points.element_bits = of_points.own_bits = std::max(8, p_.buffer(n.from.buffer).type.storage_bits());
    }
    const std::vector<int64_t>& shape = classes_.nodes[*from].shape;
    LayoutClass& c = classes_.of(*from);
    int64_t within = 1;
    for (size_t d = static_cast<size_t>(n.dim); d < shape.size(); ++d) within *= shape[d];
    if (n.dim + 1 == static_cast<int64_t>(shape.size()))
      c.reduced = true;
    else
      c.within = std::max(c.within, within);
    if (is_fragment(n.to.buffer)) {
      if (is_whole(n.to))
        to = fragment(n.to.buffer, s);
      else
        to_memory(n.to.buffer, "a reduction writes part of it");
    }
    if (to) classes_.follows.push_back({*from, *to, kept_dims(n), true});
  }

  void gemm(const Gemm& n, const Stmt& s) {
    region_to_memory(n.b, "a gemm reads it as its second operand");
    if (n.is_sparse()) region_to_memory(n.metadata, "a gemm reads it as metadata");
    const auto [rows, columns, k] = extents_of(n);
    std::optional<size_t> node;
    if (is_fragment(n.c.buffer)) {
      if (is_whole(n.c) && n.c.extent.size() == 2)
        node = fragment(n.c.buffer, s);
      else
        to_memory(n.c.buffer, "a gemm accumulates into part of it");
    }
    const auto refused = found_.no_wgmma.find(s->id);
    GemmPlace place{.threads = u_.executing_set(s),
                    .c_in_registers = node.has_value(),
                    .a_in_registers = may_be_in_registers(n.a.buffer),
                    .min_blocks = launch_.min_blocks,
                    .no_wgmma = refused == found_.no_wgmma.end() ? "" : refused->second,
                    .may_transpose = found_.transposed.contains(s->id)};
    const GemmChoice choice = choose_gemm(p_, n, place, target_);
    place.may_transpose = true;
    std::optional<GemmChoice> other;
    if (!choice.wgmma && node) other = choose_gemm(p_, n, place, target_);
    if (other && !other->transposed) other.reset();
    if (!node) node = points(s, {rows, columns});
    const bool takes_a = choice.a_in_registers && choice.has_instruction();
    if (!takes_a) region_to_memory(n.a, "a gemm reads it from memory");
    LayoutClass& c = classes_.of(*node);
    if (!c.anchor) {
      c.anchor =
          choice.has_layout() ? accumulator_of(choice, rows, columns) : row_major_fragment(c.shape, c.threads, 1);
      c.decided_by = decision_of(choice, s);
    }
    out.gemms.push_back({s, choice, *node, {}, std::move(other)});
    if (takes_a) read_from_registers(choice, n, s);
  }
  void read_from_registers(const GemmChoice& choice, const Gemm& n, const Stmt& s) {
    const std::optional<size_t> a = fragment(n.a.buffer, s);
    out.gemms.back().a = a;
    if (!a) return;
    const std::vector<int64_t>& shape = classes_.nodes[*a].shape;
    LayoutClass& c = classes_.of(*a);
    if (!c.operand) c.operand = operand_of(choice, shape[0], shape[1]);
  }
  std::string decision_of(const GemmChoice& choice, const Stmt& s) const {
    const char* how = choice.wgmma ? "the accumulator of wgmma" : choice.mma ? "the accumulator of mma.sync" : "a gemm";
    const SourceLocation& at = p_.location(s->location);
    return at.known() ? fmt::format("{}, line {}", how, at.line) : how;
  }

  const TileProgram& p_;
  const Launch& launch_;
  const analysis::Uniformity& u_;
  const target::GpuTarget& target_;
  Findings& found_;
  const std::set<StmtId> of_threads_;
  LayoutClasses& classes_ = out.classes;
  std::map<BufferId, size_t> of_fragment_;
};

}  // namespace

FragmentUses fragment_uses(const TileProgram& program, const Launch& launch, const analysis::Uniformity& uniformity,
                           const target::GpuTarget& target, Findings& findings) {
  return UseWalk(program, launch, uniformity, target, findings).out;
}

bool may_be_in_registers(const ProgramTables& p, BufferId id, const Findings& findings) {
  return p.buffer(id).space == Space::Fragment && !findings.in_memory.contains(p.root(id));
}

}  // namespace tilewright::passes
