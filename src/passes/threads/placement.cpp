// Fragments and Maps that run over the same points share one layout: a class. A class is anchored by what its accesses
// of memory like best, or by a gemm; a fragment that follows only some of a Map's dimensions, or that a Reduce makes,
// takes the layout that its class leaves when the other dimensions go. A fragment whose accesses fit no one layout
// lives in shared memory, where every access is right.
#include "passes/threads/placement.h"

#include <numeric>

#include "analysis/accessed.h"
#include "analysis/divisibility.h"
#include "analysis/panels.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "layout/algebra.h"
#include "layout/standard.h"
#include "passes/lower/lowering.h"
#include "passes/threads/annotated_layout.h"
#include "passes/threads/copied_points.h"
#include "passes/threads/shared_layout.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::Followed;
using analysis::followed;
using analysis::kNarrowestPanel;
using analysis::panel_span;

namespace {

constexpr int64_t kMaxAccumulators = 224;  // of a thread, of 255 registers
constexpr int64_t kMaxRegisters = 512;     // of one fragment and thread; beyond, it could only spill

std::optional<std::vector<int64_t>> constants(const std::vector<Expr>& list) {
  std::vector<int64_t> out;
  for (const Expr& e : list) {
    const auto c = constant_int(e);
    if (!c || *c <= 0) return std::nullopt;
    out.push_back(*c);
  }
  return out;
}

// A row is dealt alike as a tensor of one dimension and as a tile of one row. The last extent stays: vectors run along
// it.
std::vector<int64_t> without_ones(const std::vector<int64_t>& shape) {
  std::vector<int64_t> out;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 || d + 1 == shape.size()) out.push_back(shape[d]);
  return out;
}

class Placer {
 public:
  Placer(const TileProgram& p, const Launch& launch, const analysis::Uniformity& u, const target::GpuTarget& target,
         Placement& out)
      : p_(p), launch_(launch), u_(u), target_(target), out_(out) {
    std::set<BufferId> elsewhere;  // what more than one map uses, or code around maps
    for_each_map_or_other(launch.body, [&](const Map* map, const std::set<BufferId>& used) {
      for (BufferId b : used) {
        const BufferId root = p.root(b);
        if (p.buffer(root).space != Space::Local) continue;
        if (!map || !scratch_.emplace(root, map).second) elsewhere.insert(root);
      }
    });
    std::erase_if(scratch_, [&](const auto& of) {
      return elsewhere.contains(of.first) || !begins_with_store(of.second->body, of.first);
    });
  }

  // False if a fragment was found that must live in memory: it is in the placement, and all must be asked again.
  bool run() {
    walk(launch_.body, [&](const Stmt& s) { visit(s); });
    if (changed_) return false;
    anchor_all();
    check_all();
    check_copies();
    check_gemms();
    if (changed_) return false;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Class& c = classes_[find(i)];
      if (!c.layout) continue;
      if (nodes_[i].fragment.valid()) {
        out_.registers.emplace(nodes_[i].fragment, shaped(*c.layout, nodes_[i].shape));
        out_.decided_by.emplace(nodes_[i].fragment, c.decided_by);
      } else {
        out_.points.emplace(nodes_[i].stmt->id, shaped(*c.layout, nodes_[i].shape));
      }
    }
    return true;
  }

 private:
  struct Node {
    BufferId fragment;  // or
    const StmtNode* stmt = nullptr;
    std::vector<int64_t> shape;
  };
  struct Class {
    std::vector<int64_t> shape;  // without_ones
    int64_t threads = 0, first_thread = 0;
    // The widest element of memory accessed along the last dimension; 0: none. Vectors fill 16 bytes of it: a lane that
    // took several such pieces would leave gaps in what the warp touches at once.
    int element_bits = 0;
    bool reduced = false;  // along the last dimension
    std::optional<FragmentLayout> anchor, layout;
    std::optional<FragmentLayout> annotated;  // the program's wish: threads may count on what each of them holds
    std::string decided_by;
  };
  // `child` holds what `parent` leaves when only the dimensions `dims` are kept.
  struct Follows {
    size_t parent, child;
    std::vector<int> dims;  // of the parent, one a dimension of the child; -1: an extent of 1
    bool writes = false;    // the parent's threads write the child: they must be all that hold it
  };
  // A Map over a box of a fragment: its points lie as the fragment's elements do.
  struct Covers {
    size_t fragment, map;
    Followed box;
  };

  // ---- nodes
  size_t find(size_t i) const {
    while (parents_[i] != i) i = parents_[i];
    return i;
  }
  size_t add(Node n, const Stmt& at) {
    const size_t id = nodes_.size();
    const analysis::ThreadSet& set = u_.executing_set(at);
    Class c;
    c.shape = without_ones(n.shape), c.threads = set.count(), c.first_thread = set.begin[0];
    nodes_.push_back(std::move(n)), classes_.push_back(std::move(c)), parents_.push_back(id);
    return id;
  }
  // The node of a fragment, or none if it lives in memory.
  std::optional<size_t> fragment(BufferId id, const Stmt& at) {
    const Buffer& b = p_.buffer(id);
    if (b.space != Space::Fragment) return std::nullopt;
    const BufferId root = p_.root(id);
    if (out_.in_memory.contains(root)) return std::nullopt;
    if (b.is_view()) return to_memory(root, "it has views"), std::nullopt;
    if (b.reducer) return to_memory(root, "it is a reducer"), std::nullopt;
    if (b.type.is_packed()) return to_memory(root, "its elements share bytes"), std::nullopt;
    auto found = of_fragment_.find(id);
    if (found == of_fragment_.end()) {
      const auto shape = constants(b.shape);
      check_internal(shape.has_value(), "fragment {} has a shape that is not constant", b.name);
      found = of_fragment_.emplace(id, add({id, nullptr, *shape}, at)).first;
      Class& c = classes_[found->second];
      if (auto layout = annotated_layout(p_, b, *shape, c.threads)) c.annotated = shaped(*layout, c.shape);
    }
    const analysis::ThreadSet& set = u_.executing_set(at);
    const Class& c = classes_[found->second];
    if (classes_[found->second].threads != set.count() || c.first_thread != set.begin[0])
      return to_memory(root, "different sets of threads use it"), std::nullopt;
    return found->second;
  }
  void to_memory(BufferId root, std::string why) {
    changed_ = out_.in_memory.emplace(root, std::move(why)).second || changed_;
  }
  void all_to_memory(const Expr& e, const char* why) {
    walk(e, [&](const Expr& x) {
      if (const auto* n = x.as<Load>(); n && p_.buffer(n->buffer).space == Space::Fragment)
        to_memory(p_.root(n->buffer), why);
    });
  }
  void region_to_memory(const Region& r, const char* why) {
    if (p_.buffer(r.buffer).space == Space::Fragment) to_memory(p_.root(r.buffer), why);
  }
  bool is_whole(const Region& r) const { return ir::is_whole(r, p_.buffer(r.buffer)); }
  void unite(size_t a, size_t b) {
    a = find(a), b = find(b);
    if (a == b) return;
    if (b < a) std::swap(a, b);
    parents_[b] = a;
    Class& keep = classes_[a];
    const Class& gone = classes_[b];
    keep.element_bits = std::max(keep.element_bits, gone.element_bits);
    keep.reduced = keep.reduced || gone.reduced;
    if (!keep.anchor) keep.anchor = gone.anchor, keep.decided_by = gone.decided_by;
    if (!keep.annotated) keep.annotated = gone.annotated;
  }

  // ---- statements
  void visit(const Stmt& s) {
    if (const auto* n = s.as<Map>()) return map(*n, s);
    if (u_.in_map(s)) return;  // the Map has seen it
    if (const auto* n = s.as<Reduce>()) return reduce(*n, s);
    if (const auto* n = s.as<Gemm>()) return gemm(*n, s);
    if (const auto* n = s.as<Scan>()) {
      region_to_memory(n->from, "a scan reads it"), region_to_memory(n->to, "a scan writes it");
      return;
    }
    if (const auto* n = s.as<Copy>()) {
      region_to_memory(n->from, "an asynchronous copy reads it");
      region_to_memory(n->to, "an asynchronous copy writes it");
      asynchronous(*n, s);
      return;
    }
    if (const auto* n = s.as<Print>(); n && n->buffer.valid() && p_.buffer(n->buffer).space == Space::Fragment)
      to_memory(p_.root(n->buffer), "it is printed");
    const char* why = "thread code reads or writes it outside of tile operations";
    for_each_expr(s, [&](const Expr& e) { all_to_memory(e, why); });
    if (const auto* n = s.as<Store>(); n && p_.buffer(n->to.buffer).space == Space::Fragment)
      to_memory(p_.root(n->to.buffer), why);
    if (const auto* n = s.as<Atomic>(); n && p_.buffer(n->to.buffer).space == Space::Fragment)
      to_memory(p_.root(n->to.buffer), why);
  }

  struct Access {
    BufferId buffer;
    const std::vector<Expr>* indices;
    bool writes = false;
  };
  static std::vector<Access> accesses(const Body& body) {
    std::vector<Access> out;
    walk(body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) out.push_back({n->to.buffer, &n->to.indices, true});
      if (const auto* n = s.as<Atomic>()) out.push_back({n->to.buffer, &n->to.indices, true});
    });
    walk_exprs(body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) out.push_back({n->buffer, &n->indices, false});
    });
    return out;
  }
  // Maps, and each other statement's own expressions and memory.
  template <typename F>
  static void for_each_map_or_other(const Body& body, F&& f) {
    for (const Stmt& s : body) {
      if (const auto* n = s.as<Map>()) {
        f(n, used_buffers(n->body));
        continue;
      }
      bool holds = false;
      for_each_body(s, [&](const Body&) { holds = true; });
      if (!holds) {
        f(nullptr, used_buffers(Body{s}));
        continue;
      }
      std::set<BufferId> own;
      for_each_expr(s, [&](const Expr& e) {
        walk(e, [&](const Expr& x) {
          if (const auto* n = x.as<Load>()) own.insert(n->buffer);
        });
      });
      f(nullptr, own);
      for_each_body(s, [&](const Body& inside) { for_each_map_or_other(inside, f); });
    }
  }
  // Whether each point stores such a variable before it does anything else with it.
  bool begins_with_store(const Body& body, BufferId root) const {
    const Buffer& b = p_.buffer(root);
    if (std::any_of(b.shape.begin(), b.shape.end(), [](const Expr& e) { return constant_int(e) != 1; })) return false;
    for (const Stmt& s : body) {
      const std::set<BufferId> used = used_buffers(Body{s});
      if (std::none_of(used.begin(), used.end(), [&](BufferId id) { return p_.root(id) == root; })) continue;
      const auto* store = s.as<Store>();
      bool reads = false;
      if (store)
        walk(store->value, [&](const Expr& e) {
          const auto* n = e.as<Load>();
          reads = reads || (n && p_.root(n->buffer) == root);
        });
      return store && store->to.buffer == root && !reads;
    }
    return false;
  }
  // Whether it matters which thread runs a point: it changes what a thread keeps, or reads what threads differ in.
  bool is_of_threads(const Map& n, const Stmt& s) const {
    const std::set<BufferId> changed = changed_roots(n.body, p_);
    bool found = false;
    for (BufferId b : used_buffers(n.body)) {
      const BufferId root = p_.root(b);
      if (p_.buffer(root).space != Space::Local) continue;
      const auto scratch = scratch_.find(root);
      if (scratch != scratch_.end() && scratch->second == &n) continue;
      const std::vector<Expr> first(p_.buffer(root).shape.size(), constant(0));
      found = found || changed.contains(root) || !u_.is_uniform(load(root, first, p_.buffer(root).type), s);
    }
    return found;
  }

  void map(const Map& n, const Stmt& s) {
    const auto shape = constants(n.extents);
    // Points that use what threads differ in are dealt in the language's order, whatever the fragments.
    const bool own_order = is_of_threads(n, s) || !shape;
    std::optional<size_t> node;
    for (const Access& a : accesses(n.body)) {
      const Buffer& b = p_.buffer(a.buffer);
      if (b.space != Space::Fragment || out_.in_memory.contains(p_.root(a.buffer))) continue;
      if (own_order) {
        to_memory(p_.root(a.buffer), shape ? "a parallel loop over thread-local variables uses it"
                                           : "a parallel loop of dynamic extent uses it");
        continue;
      }
      const auto id = fragment(a.buffer, s);
      if (!id) continue;
      const auto box = followed(*a.indices, n.vars);
      if (!box) {
        to_memory(p_.root(a.buffer), "it is indexed by more than the variables of a parallel loop");
        continue;
      }
      if (!node) node = add({{}, &*s, *shape}, s);
      link(*node, *id, *box, a);
    }
    if (own_order) return;
    if (!node) node = add({{}, &*s, *shape}, s);
    note_memory(*node, n);
  }
  // A Map's points and the box of a fragment that it accesses.
  void link(size_t node, size_t id, const Followed& box, const Access& access) {
    const BufferId buffer = access.buffer;
    const std::vector<int>& dims = box.dims;
    const std::vector<int64_t>& points = nodes_[node].shape;
    std::vector<int> kept;
    for (int d : dims)
      if (d >= 0) kept.push_back(d);
    if (!std::is_sorted(kept.begin(), kept.end())) return to_memory(buffer, "it is transposed");
    if (!box.is_whole(points, nodes_[id].shape)) {
      covers_.push_back({id, node, box});
      return;
    }
    bool all = true;
    for (size_t d = 0; d < points.size(); ++d)
      all = all && (points[d] == 1 || std::find(kept.begin(), kept.end(), static_cast<int>(d)) != kept.end());
    if (all && classes_[find(node)].shape == classes_[find(id)].shape)
      unite(node, id);
    else
      follows_.push_back({node, id, dims, access.writes});
  }
  // What the Map would like for its accesses of memory.
  void note_memory(size_t node, const Map& n) {
    Class& c = classes_[find(node)];
    for (const Access& a : accesses(n.body)) {
      const Buffer& b = p_.buffer(a.buffer);
      const bool in_registers = b.space == Space::Fragment && !out_.in_memory.contains(p_.root(a.buffer));
      if (in_registers || b.rank() == 0 || b.space == Space::Local) continue;
      const std::set<VarId> used = used_vars(a.indices->back());
      if (!used.contains(n.vars.back())) continue;
      const int bits = std::max(8, b.type.storage_bits());
      c.element_bits = std::max(c.element_bits, bits);
    }
  }

  void asynchronous(const Copy& n, const Stmt& s) {
    std::vector<int64_t> shape;
    for (const Expr& e : n.to.extent) {
      const auto extent = constant_int(e);
      check_internal(extent.has_value(), "an asynchronous copy of dynamic extent");
      if (*extent != 1) shape.push_back(*extent);
    }
    if (shape.empty()) shape.push_back(1);
    classes_[add({{}, &*s, shape}, s)].element_bits = std::max(8, p_.buffer(n.to.buffer).type.storage_bits());
  }

  void reduce(const Reduce& n, const Stmt& s) {
    std::optional<size_t> from, to;
    if (p_.buffer(n.from.buffer).space == Space::Fragment) {
      if (is_whole(n.from))
        from = fragment(n.from.buffer, s);
      else
        to_memory(p_.root(n.from.buffer), "part of it is reduced");
    }
    if (!from) {
      const auto shape = constants(n.from.extent);
      check_internal(shape.has_value(), "a reduction over extents that are not constant");
      from = add({{}, &*s, *shape}, s);
      if (n.dim + 1 == static_cast<int64_t>(shape->size()))
        classes_[*from].element_bits = std::max(8, p_.buffer(n.from.buffer).type.storage_bits());
    }
    if (n.dim + 1 == static_cast<int64_t>(nodes_[*from].shape.size())) classes_[find(*from)].reduced = true;
    if (p_.buffer(n.to.buffer).space == Space::Fragment) {
      if (is_whole(n.to))
        to = fragment(n.to.buffer, s);
      else
        to_memory(p_.root(n.to.buffer), "a reduction writes part of it");
    }
    if (!to) return;
    follows_.push_back({*from, *to, kept_dims(n), true});
  }

  // ---- gemms
  // What a gemm asks for, as the choosers see it.
  struct GemmShape {
    const Gemm& gemm;
    int64_t rows, columns, k, threads, first_thread;
    DType a, b, c;
  };
  bool is_in_registers(BufferId id) const {
    return p_.buffer(id).space == Space::Fragment && !out_.in_memory.contains(p_.root(id));
  }
  // Why an operand in shared memory does not suit ldmatrix: rows of 16 bytes, of which whole ones make up the tile.
  // Elements of 32 bits across k are words by themselves.
  std::string misfit_mma(const Region& r, bool k_is_last, const target::MmaInstruction& i) const {
    const Buffer& b = p_.buffer(r.buffer);
    if (b.space == Space::Global) return fmt::format("'{}' is in global memory", b.name);
    if (b.is_view() || !b.strides.empty()) return fmt::format("'{}' is a view", b.name);
    if (r.extent.size() < 2) return "an operand has one dimension";
    const int64_t chunk = 128 / i.a.bits;
    if (!k_is_last && i.a.bits != 16 && i.a.bits != 32) return fmt::format("'{}' is not contiguous along k", b.name);
    if (constant_int(b.shape.back()).value_or(1) % chunk != 0)
      return fmt::format("rows of '{}' are no multiple of 16 bytes", b.name);
    const auto column = constant_int(r.min.back());
    if (!column || *column % chunk != 0)
      return fmt::format("the tile does not begin at 16 bytes of a row of '{}'", b.name);
    return "";
  }
  // Why one does not suit wgmma: whole swizzled panels.
  std::string misfit_wgmma(const Region& r, bool k_is_last, const target::WgmmaInstruction& i, int64_t step,
                           int64_t width) const {
    const Buffer& b = p_.buffer(r.buffer);
    if (b.space != Space::Shared) return fmt::format("'{}' is not in shared memory", b.name);
    const int64_t span = panel_span(p_, r.buffer);
    if (span <= kNarrowestPanel) return fmt::format("rows of '{}' are no whole panels of 32, 64 or 128 bytes", b.name);
    if (!k_is_last && !i.transposes) return fmt::format("'{}' is not contiguous along k", b.name);
    const size_t rank = r.min.size();
    const int64_t panel = span * 8 / b.type.bits;
    if (k_is_last && panel % step != 0)
      return fmt::format("one instruction reads more of a row than the {} bytes of a panel of '{}'", span, b.name);
    if (constant_int(b.shape[rank - 2]).value_or(0) % 8 != 0) return fmt::format("rows of '{}' are no eights", b.name);
    if (analysis::power_of_two_divisor(r.min[rank - 2], p_) % 8 != 0)
      return fmt::format("the tile does not begin at a multiple of eight rows of '{}'", b.name);
    const auto column = constant_int(r.min.back());
    if (!column || *column % (k_is_last ? step : panel) != 0 || (!k_is_last && width % panel != 0))
      return fmt::format("the tile is no whole panels of '{}'", b.name);
    return "";
  }
  static bool divide(GemmChoice& c, GemmPolicy policy, int64_t m, int64_t n, int64_t warps, int64_t unit_m,
                     int64_t unit_n, bool rows_first) {
    const auto grid = divide_warps(policy, m, n, warps, unit_m, unit_n, rows_first);
    if (grid) c.warps_m = grid->m, c.warps_n = grid->n;
    return grid.has_value();
  }
  std::string fragment_misfit(const GemmShape& g) const {
    if (!is_in_registers(g.gemm.a.buffer)) return "";
    return g.gemm.transpose_a || !is_whole(g.gemm.a) || g.gemm.a.extent.size() != 2 ? "a is part of a fragment" : "";
  }
  static std::string none_for(const GemmShape& g) {
    return fmt::format("none multiplies {}{} by {} into {}", g.gemm.is_sparse() ? "a sparse " : "", g.a.name(),
                       g.b.name(), g.c.name());
  }
  // Why not; empty: it is chosen.
  std::string choose_wgmma(GemmChoice& c, const GemmShape& g, const Stmt& s) const {
    if (!target_.has.wgmma) return fmt::format("sm_{} has none", target_.arch);
    if (auto found = out_.no_wgmma.find(s->id); found != out_.no_wgmma.end()) return found->second;
    const target::WgmmaInstruction* i = target::wgmma_for(g.a, g.b, g.c, g.gemm.is_sparse());
    if (!i) return none_for(g);
    if (g.k % i->k() != 0) return fmt::format("k is no multiple of {}", i->k());
    if (g.threads % target::kWarpgroupThreads != 0 || g.first_thread % target::kWarpgroupThreads != 0)
      return "the threads are no whole warpgroups";
    // Rows first: every warpgroup reads all of b, so the fewer share a row of a the less is read.
    if (!divide(c, g.gemm.policy, g.rows, g.columns, g.threads / target::kWarpgroupThreads, target::kWgmmaRows, 8,
                true))
      return fmt::format("{} x {} does not divide into 64 rows for each of {} warpgroups", g.rows, g.columns,
                         g.threads / target::kWarpgroupThreads);
    const int64_t columns = wgmma_columns(*i, g.columns / c.warps_n);
    if (columns == 0) return fmt::format("none has {} columns", g.columns / c.warps_n);
    const bool asked_for = g.gemm.completion.queue == Queue::Wgmma;  // the device compiler spills
    if (!asked_for && g.rows / c.warps_m * (g.columns / c.warps_n) / target::kWarpgroupThreads > kMaxAccumulators)
      return "the accumulators of a thread are more than its registers";
    if (std::string why = fragment_misfit(g); !why.empty()) return why;
    if (!is_in_registers(g.gemm.a.buffer))
      if (std::string why = misfit_wgmma(g.gemm.a, !g.gemm.transpose_a, *i, i->a_k(), g.rows / c.warps_m); !why.empty())
        return why;
    if (std::string why = misfit_wgmma(g.gemm.b, g.gemm.transpose_b, *i, i->k(), columns); !why.empty()) return why;
    c.wgmma = i;
    return "";
  }
  std::string choose_mma(GemmChoice& c, const GemmShape& g) const {
    const target::MmaInstruction* i = target::mma_for(g.a, g.b, g.c, target_.arch, g.gemm.is_sparse(), g.k);
    if (!i) return none_for(g);
    if (g.k % i->k != 0) return fmt::format("k is no multiple of {}", i->k);
    if (g.threads % kWarpThreads != 0) return "the threads are no whole warps";
    if (!divide(c, g.gemm.policy, g.rows, g.columns, g.threads / kWarpThreads, target::kMmaRows, i->n, false))
      return fmt::format("{} x {} does not divide into tiles of {} x {} for {} warps", g.rows, g.columns,
                         target::kMmaRows, i->n, g.threads / kWarpThreads);
    // ptxas 13.0 makes a predicate of the product of what is cleared where a condition holds, and on an H200 the lower
    // eight rows then kept what was in the registers.
    if (i->a == f64 && g.gemm.clear && !constant_int(g.gemm.clear))
      return "accumulators of doubles are cleared under a condition";
    if (i->a == f64) {  // any element, by plain loads
      c.a_in_registers = false, c.mma = i;
      return "";
    }
    if (std::string why = fragment_misfit(g); !why.empty()) return why;
    if (!is_in_registers(g.gemm.a.buffer))
      if (std::string why = misfit_mma(g.gemm.a, !g.gemm.transpose_a, *i); !why.empty()) return why;
    if (std::string why = misfit_mma(g.gemm.b, g.gemm.transpose_b, *i); !why.empty()) return why;
    c.mma = i;
    return "";
  }
  // Neighbours in memory come in vectors of 16 bytes: of k, or of what is not k.
  bool has_vectors(const Region& r, bool k_is_last, int64_t vector) const {
    const Buffer& b = p_.buffer(r.buffer);
    if (b.space == Space::Global || b.space == Space::Local || is_in_registers(r.buffer)) return false;
    if (b.is_view() || !b.strides.empty() || b.type.bits < 8 || r.extent.size() < 2) return false;
    const auto first = constant_int(r.min.back());
    const int64_t row = constant_int(b.shape.back()).value_or(1);
    return (k_is_last || vector > 1) && first && *first % vector == 0 && row % vector == 0;
  }
  void choose_tile(GemmChoice& c, const GemmShape& g) const {
    if (g.gemm.is_sparse() || accumulator(g.c) != g.c || g.threads % kWarpThreads != 0) return;
    const int64_t vector = std::min<int64_t>(4, 128 / std::max(g.a.bits, g.b.bits)), warps = g.threads / kWarpThreads;
    FmaTile t{g.gemm.transpose_a ? vector : 1, g.gemm.transpose_b ? 1 : vector, vector};
    if (g.k % vector != 0 || !has_vectors(g.gemm.a, !g.gemm.transpose_a, vector) ||
        !has_vectors(g.gemm.b, g.gemm.transpose_b, vector))
      return;
    // The squarer a thread's part, the less it reads.
    double best = 0;
    for (int64_t wm = 1; wm <= warps; ++wm) {
      const int64_t wn = warps / wm;
      if (wm * wn != warps || g.rows % (t.unit_rows() * wm) != 0 || g.columns % (t.unit_columns() * wn) != 0) continue;
      const double rows = static_cast<double>(g.rows / wm / kTileLanesOfColumn),
                   columns = static_cast<double>(g.columns / wn / kTileLanesOfRow);
      const double score = std::min(rows / columns, columns / rows);
      if (score > best) best = score, c.warps_m = wm, c.warps_n = wn, c.tile = t;
    }
  }
  GemmChoice choose(const Gemm& n, const Stmt& s, int64_t rows, int64_t columns) const {
    GemmChoice c;
    const size_t rank = n.b.extent.size();
    const auto k = constant_int(n.transpose_b ? n.b.extent[rank - 1] : n.b.extent[rank - 2]);
    check_internal(k && *k > 0, "a gemm along an extent that is not constant");
    const analysis::ThreadSet& set = u_.executing_set(s);
    const GemmShape g{n,
                      rows,
                      columns,
                      *k,
                      set.count(),
                      set.begin[0],
                      operand_type(p_, n, n.a),
                      operand_type(p_, n, n.b),
                      p_.buffer(n.c.buffer).type};
    c.a_in_registers = is_in_registers(n.a.buffer);
    c.why_not_wgmma = choose_wgmma(c, g, s);
    if (!c.wgmma) c.why_not_mma = choose_mma(c, g);
    if (!c.has_instruction()) choose_tile(c, g);
    return c;
  }
  // The layouts of c and of an a in registers under the choice.
  static FragmentLayout layout_c(const GemmChoice& c, int64_t rows, int64_t columns) {
    const WarpGrid grid{c.warps_m, c.warps_n};
    if (c.tile) return register_tiles(rows, columns, c.tile->rows, c.tile->columns, grid);
    return c.wgmma ? wgmma_c(rows, columns, grid) : mma_c(rows, columns, grid);
  }
  static FragmentLayout layout_a(const GemmChoice& c, int64_t rows, int64_t k) {
    const WarpGrid grid{c.warps_m, c.warps_n};
    return c.wgmma ? wgmma_a(rows, k, c.wgmma->a.bits, grid) : mma_a(rows, k, c.mma->a.bits, grid);
  }

  void gemm(const Gemm& n, const Stmt& s) {
    region_to_memory(n.b, "a gemm reads it as its second operand");
    if (n.is_sparse()) region_to_memory(n.metadata, "a gemm reads it as metadata");
    const size_t rank = n.c.extent.size();
    const auto rows = constant_int(n.c.extent[rank - 2]), columns = constant_int(n.c.extent[rank - 1]);
    check_internal(rows && columns, "a gemm of extents that are not constant");
    std::optional<size_t> node;
    if (p_.buffer(n.c.buffer).space == Space::Fragment) {
      if (is_whole(n.c) && rank == 2)
        node = fragment(n.c.buffer, s);
      else
        to_memory(p_.root(n.c.buffer), "a gemm accumulates into part of it");
    }
    if (!node) node = add({{}, &*s, {*rows, *columns}}, s);
    GemmChoice choice = choose(n, s, *rows, *columns);
    if (choice.has_instruction() && !nodes_[*node].fragment.valid()) {
      choice.why_not_wgmma = choice.why_not_mma = "c is not in registers";
      choice.wgmma = nullptr, choice.mma = nullptr;
    }
    if (!nodes_[*node].fragment.valid()) choice.tile.reset();
    if (!choice.a_in_registers || !choice.has_instruction()) region_to_memory(n.a, "a gemm reads it from memory");
    Class& c = classes_[find(*node)];
    const FragmentLayout wanted =
        choice.has_layout() ? layout_c(choice, *rows, *columns) : row_major_fragment(c.shape, c.threads, 1);
    if (!c.anchor) c.anchor = wanted, c.decided_by = decision_of(choice, s);
    gemms_.push_back({s, choice, *node, {}});
    if (choice.a_in_registers && choice.has_instruction()) gemms_.back().a = fragment(n.a.buffer, s);
  }
  std::string decision_of(const GemmChoice& choice, const Stmt& s) const {
    const char* how = choice.wgmma ? "the accumulator of wgmma" : choice.mma ? "the accumulator of mma.sync" : "a gemm";
    return fmt::format("{}{}", how, at_line(s));
  }
  std::string at_line(const Stmt& s) const {
    const SourceLocation& at = p_.location(s->location);
    return at.known() ? fmt::format(", line {}", at.line) : "";
  }
  // Once the layouts are known: what of the choices holds.
  void check_gemms() {
    for (GemmUse& g : gemms_) {
      GemmChoice& choice = g.choice;
      auto refuse = [&](const char* why) {
        if (choice.wgmma) {
          out_.no_wgmma.emplace(g.stmt->id, why), changed_ = true;
          return;
        }
        choice.mma = nullptr, choice.why_not_mma = why;
      };
      const FragmentLayout c = layout_of(g.c);
      if (choice.tile && c != layout_c(choice, c.shape()[0], c.shape()[1])) choice.tile.reset();
      if (choice.has_instruction() && c != layout_c(choice, c.shape()[0], c.shape()[1]))
        refuse("another operation decides the layout of c");
      if (g.a) {
        const FragmentLayout a = layout_of(*g.a);
        if (!choice.has_instruction() || !equal_up_to_registers(a, layout_a(choice, a.shape()[0], a.shape()[1])))
          to_memory(nodes_[*g.a].fragment, "a gemm wants it in another layout than its other uses");
      }
      out_.gemms.insert_or_assign(g.stmt->id, choice);
    }
  }

  // ---- layouts
  // The layout under another shape with the same extents other than 1.
  static FragmentLayout shaped(const FragmentLayout& layout, const std::vector<int64_t>& shape) {
    if (layout.shape() == shape) return layout;
    auto out = reshape(layout, shape);
    check_internal(out.has_value(), "a layout cannot take a shape that differs by extents of 1");
    return *out;
  }
  FragmentLayout layout_of(size_t node) const { return shaped(*classes_[find(node)].layout, nodes_[node].shape); }
  static FragmentLayout kept(const FragmentLayout& layout, const std::vector<int>& dims) {
    FragmentLayout out = layout;
    for (int d = layout.rank(); d-- > 0;)
      if (std::find(dims.begin(), dims.end(), d) == dims.end()) out = reduced(out, d);
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d] < 0) out = insert_dim(out, static_cast<int>(d));
    return out;
  }
  // Whether several warps hold a row.
  static bool crosses_warps(const FragmentLayout& layout) {
    for (const Factor& m : layout.dims().back())
      if (m.home == Home::Warp && m.extent > 1) return true;
    return false;
  }
  void anchor(Class& c) {
    if (c.anchor) {
      c.layout = c.anchor;
      return;
    }
    if (c.annotated) {
      c.layout = c.annotated, c.decided_by = "its annotation";
      return;
    }
    const int bits = c.element_bits ? c.element_bits : 32;
    c.decided_by =
        c.element_bits ? fmt::format("accesses of memory, elements of {} bits", bits) : "nothing: row after row";
    const int64_t vector = best_vector(c.shape, c.threads, bits);
    c.layout = row_major_fragment(c.shape, c.threads, vector, bits);
    if (!c.reduced || !crosses_warps(*c.layout)) return;
    if (auto rows = rows_in_warps(c.shape, c.threads, vector)) {
      c.layout = std::move(rows);
      c.decided_by = "a reduction along rows: each lies in one warp";
    }
  }
  void anchor_all() {
    std::vector<size_t> order;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (find(i) == i) order.push_back(i);
    auto size = [&](size_t i) {
      const auto& s = classes_[i].shape;
      return std::accumulate(s.begin(), s.end(), int64_t{1}, std::multiplies<>());
    };
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      const bool x = classes_[a].anchor.has_value(), y = classes_[b].anchor.has_value();
      return x != y ? x : size(a) > size(b);
    });
    for (size_t i : order) {
      Class& c = classes_[i];
      if (!c.layout) anchor(c);
      hand_on(i);
    }
  }
  // The layout of a Map over a box of a fragment; none: threads would need each other's elements.
  std::optional<FragmentLayout> covered(const Covers& c) const {
    const auto part = box_of(layout_of(c.fragment), c.box, nodes_[c.map].shape);
    if (!part) return std::nullopt;
    // The dimensions that no variable follows have an extent of 1.
    FragmentLayout out = part->layout;
    for (size_t d = c.box.dims.size(); d-- > 0;)
      if (c.box.dims[d] < 0) out = remove_dim(out, static_cast<int>(d));
    return reshape(out, nodes_[c.map].shape);
  }
  std::string name_of_node(size_t node) const {
    if (nodes_[node].fragment.valid()) return fmt::format("'{}'", p_.buffer(nodes_[node].fragment).name);
    const SourceLocation& at = p_.location(nodes_[node].stmt->location);
    return at.known() ? fmt::format("the operation of line {}", at.line) : "an operation";
  }
  // Classes that follow this one and have no layout take theirs from it.
  void hand_on(size_t parent) {
    for (const Covers& c : covers_) {
      if (find(c.fragment) != parent) continue;
      Class& child = classes_[find(c.map)];
      if (child.layout || child.anchor) continue;
      if (auto layout = covered(c)) {
        child.layout = shaped(*layout, child.shape);
        child.decided_by = fmt::format("{}: a box of it", name_of_node(c.fragment));
        hand_on(find(c.map));
      }
    }
    for (const Follows& f : follows_) {
      if (find(f.parent) != parent) continue;
      Class& child = classes_[find(f.child)];
      if (child.layout || child.anchor) continue;
      child.layout = shaped(kept(layout_of(f.parent), f.dims), child.shape);
      child.decided_by = fmt::format("{}: dimensions of it", name_of_node(f.parent));
      hand_on(find(f.child));
    }
  }
  void check_all() {
    for (const Follows& f : follows_) {
      const Class& child = classes_[find(f.child)];
      const FragmentLayout wanted = shaped(kept(layout_of(f.parent), f.dims), child.shape);
      const bool everywhere = !f.writes && child.layout->is_replicated() && child.layout->copy_count() == child.threads;
      if (everywhere || equal_up_to_registers(*child.layout, wanted)) continue;
      to_memory(nodes_[f.child].fragment, "two of its uses want different layouts");
    }
    for (const Covers& c : covers_) {
      const auto wanted = covered(c);
      if (!wanted || !equal_up_to_registers(layout_of(c.map), shaped(*wanted, nodes_[c.map].shape)))
        to_memory(nodes_[c.fragment].fragment, "a parallel loop runs over part of it, other threads over that part");
    }
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].fragment.valid() && classes_[find(i)].layout->registers() > kMaxRegisters &&
          fits_in_memory(nodes_[i].fragment))
        to_memory(nodes_[i].fragment, "it does not fit in the registers of its threads");
  }
  // Several threads that run a point, each with copies of its elements, must not need what one of them stores.
  void check_copies() {
    const auto in_memory = [&](BufferId id) {
      if (!id.valid()) return false;
      const Space space = p_.buffer(p_.root(id)).space;
      return space == Space::Global || space == Space::Shared ||
             (space == Space::Fragment && out_.in_memory.contains(p_.root(id)));
    };
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const auto* map = nodes_[i].stmt ? std::get_if<Map>(&nodes_[i].stmt->op) : nullptr;
      if (!map || classes_[find(i)].layout->copy_count() == 1 || !copies_would_meet(*map, p_, in_memory)) continue;
      for (BufferId id : used_buffers(map->body))
        if (is_in_registers(id)) to_memory(p_.root(id), "a parallel loop that uses it reads memory that it changes");
    }
  }
  // A larger one spills to the memory of its threads.
  bool fits_in_memory(BufferId fragment) const {
    const Buffer& b = p_.buffer(fragment);
    int64_t elements = 1;
    for (const Expr& e : b.shape) elements *= constant_int(e).value_or(1);
    return bytes_of(b.type, elements) <= target_.shared_bytes;
  }

  const TileProgram& p_;
  const Launch& launch_;
  const analysis::Uniformity& u_;
  const target::GpuTarget& target_;
  Placement& out_;
  std::vector<Node> nodes_;
  std::vector<Class> classes_;  // by node; only those of find() count
  std::vector<size_t> parents_;
  std::vector<Follows> follows_;
  std::vector<Covers> covers_;
  struct GemmUse {
    Stmt stmt;
    GemmChoice choice;
    size_t c;
    std::optional<size_t> a;  // a fragment in registers
  };
  std::vector<GemmUse> gemms_;
  std::map<BufferId, size_t> of_fragment_;
  std::map<BufferId, const Map*> scratch_;  // variables that one map's points use, each for itself
  bool changed_ = false;
};

}  // namespace

std::optional<FragmentSlice> box_of(const FragmentLayout& layout, const Followed& box,
                                    const std::vector<int64_t>& points) {
  FragmentSlice out{layout, {}};
  for (size_t d = 0; d < box.dims.size(); ++d) {
    const int64_t extent = box.dims[d] < 0 ? 1 : points[static_cast<size_t>(box.dims[d])];
    if (box.first[d] == 0 && extent == layout.shape()[d]) continue;
    const auto part = slice(out.layout, static_cast<int>(d), box.first[d], extent);
    if (!part || part->base.thread != 0 || part->base.cta != 0 || part->layout.threads() != layout.threads())
      return std::nullopt;
    out.layout = part->layout, out.base.reg += part->base.reg;
  }
  return out;
}

std::optional<WarpGrid> divide_warps(GemmPolicy policy, int64_t m, int64_t n, int64_t warps, int64_t unit_m,
                                     int64_t unit_n, bool rows_first) {
  std::optional<WarpGrid> best;
  double most = 0;
  for (int64_t wm = 1; wm <= warps; ++wm) {
    const int64_t wn = warps / wm;
    if (wm * wn != warps || m % (unit_m * wm) != 0 || n % (unit_n * wn) != 0) continue;
    const double rows = static_cast<double>(m / wm), columns = static_cast<double>(n / wn);
    const double score = policy == GemmPolicy::FullCol                 ? static_cast<double>(wn)
                         : policy == GemmPolicy::FullRow || rows_first ? static_cast<double>(wm)
                                                                       : std::min(rows / columns, columns / rows);
    if (best && score <= most) continue;
    best = WarpGrid{wm, wn}, most = score;
  }
  return best;
}

int64_t wgmma_columns(const target::WgmmaInstruction& i, int64_t columns) {
  for (int64_t parts = 1; parts <= columns / 8; ++parts)
    if (columns % parts == 0 && i.has_columns(columns / parts)) return columns / parts;
  return 0;
}

FragmentLayout reduced(const FragmentLayout& layout, int dim) { return combined(remove_dim(layout, dim)); }

Placement place_fragments(const TileProgram& program, const Launch& launch, const analysis::Uniformity& uniformity,
                          const target::GpuTarget& target) {
  Placement out;
  while (!Placer(program, launch, uniformity, target, out).run())
    out.registers.clear(), out.points.clear(), out.gemms.clear();
  return out;
}

}  // namespace tilewright::passes
