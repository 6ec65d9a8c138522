#include "analysis/load_rings.h"

#include "analysis/accessed.h"
#include "analysis/body_order.h"
#include "analysis/brought_tiles.h"
#include "analysis/tma.h"
#include "ir/any_in.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

class RingSearch {
 public:
  RingSearch(const ProgramTables& p, const Launch& launch, bool walks_tiles)
      : p_(p), launch_(launch), walks_tiles_(walks_tiles) {}

  FoundRings run() {
    find(launch_.body);
    return std::move(out_);
  }

 private:
  bool mentions(const Stmt& s, BufferId id) const { return used_roots({s}, p_).contains(p_.root(id)); }
  // Whether the tile is read there, by its own name, and nothing writes it.
  bool reads_only(const Stmt& s, BufferId id) const {
    return !any_in({s}, [&](const Stmt& x) {
      return std::ranges::any_of(effects_of(x).list, [&](const Effect& e) {
        const bool is_it = e.region.valid() && p_.root(e.region.buffer) == id;
        return is_it && (e.region.buffer != id || e.access != Access::Read);
      });
    });
  }
  bool is_written(BufferId id) const { return writers(p_.root(id)) > 0; }
  int writers(BufferId id) const {
    int count = 0;
    walk(launch_.body, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list)
        count += e.region.valid() && (e.access == Access::Write || e.access == Access::Accumulate) &&
                 may_overlap(p_.root(e.region.buffer), id, p_);
    });
    return count;
  }
  // Whether only the computing threads can know the value.
  bool is_of_math(const Expr& e) const {
    return names_result(e) || any_in(e, [&](const Expr& x) {
             const auto* n = x.as<Load>();
             return n && (p_.buffer(p_.root(n->buffer)).space != Space::Global || is_written(n->buffer));
           });
  }
  bool names_result(const Expr& e) const {
    return std::ranges::any_of(used_vars(e), [&](VarId v) { return out_.results.contains(v); });
  }
  // Fills, with a constant, of what a copy leaves of its tile: they could as well stand before all others.
  std::vector<Stmt> rests_of(const Copy& c) const {
    std::vector<Stmt> out;
    walk(launch_.body, [&](const Stmt& s) {
      const auto* n = s.as<Fill>();
      if (!n || n->to.buffer != c.to.buffer || !n->value.as<Const>()) return;
      bool known = true, apart = false;
      for (size_t d = 0; d < n->to.min.size(); ++d) {
        const auto first = constant_int(n->to.min[d]), extent = constant_int(n->to.extent[d]);
        const auto brought = constant_int(c.to.extent[d]);
        known = known && first && extent;
        apart = apart || (first && brought && *first >= *brought);
      }
      if (known && apart) out.push_back(s);
    });
    return out;
  }
  // All of a tile, or of a matrix the first rows and columns.
  static bool is_of_first(const Region& r, const Buffer& b) {
    const bool first = std::ranges::all_of(r.min, [](const Expr& e) { return constant_int(e) == 0; }) &&
                       std::ranges::all_of(r.extent, [](const Expr& e) { return constant_int(e).has_value(); });
    return is_whole(r, b) || (b.rank() > 1 && first);
  }
  // A copy that the loader may take.
  bool is_loadable(const Copy& c) {
    const BufferId id = c.to.buffer;
    const Buffer& to = p_.buffer(id);
    if (p_.buffer(c.from.buffer).space != Space::Global || to.space != Space::Shared) return false;
    if (c.combine != ir::Combine::None || !ring_misfit(p_, c).empty()) return false;
    if (writers(id) != 1 + std::ssize(rests_of(c))) return false;
    if (!is_of_first(c.to, to)) return false;
    if (is_written(c.from.buffer)) return false;
    // Where it reads must not depend on what the others compute.
    if (c.im2col.present() && (is_of_math(c.im2col.row_block) || is_of_math(c.im2col.column_block))) return false;
    return std::none_of(c.from.min.begin(), c.from.min.end(), [&](const Expr& e) { return is_of_math(e); });
  }

  void find(const Body& body) {
    for (size_t i = 0; i < body.size(); ++i) {
      const Stmt& s = body[i];
      match_result(s);
      if (const auto* copy = s.as<Copy>()) {
        // The loader, which runs ahead, would not know of the turns that the others do not take.
        if (!jumps_ && is_loadable(*copy)) ring(body, i, copy->to.buffer);
        if (!is_moved(out_.rings, s) && waits_for_memory(*copy)) {
          const std::string why = jumps_ ? "a loop around it jumps" : ring_misfit(p_, *copy);
          out_.left = fmt::format("'{}' does not come by TMA: {}", p_.buffer(copy->to.buffer).name,
                                  why.empty() ? "it is used otherwise" : why);
        }
        continue;
      }
      if (const auto gathered = gathers(body, i)) {
        const Body rows = gathered->rows ? Body{body[*gathered->rows]} : Body{};
        if (only_multiplies(body) && is_known_to_loader(s, rows) && (rows.empty() || is_known_to_loader(rows[0], {})))
          ring(body, i, gathered->tile, rows);
        if (!is_moved(out_.rings, s))
          out_.left = fmt::format("'{}' comes by cp.async: the rows of it are found one by one",
                                  p_.buffer(gathered->tile).name);
      }
      if (const auto* n = s.as<If>(); n && !is_of_math(n->condition)) {
        const std::optional<size_t> outside = std::exchange(guarded_, nest_.size());
        const bool apart = std::exchange(by_thread_, by_thread_ || is_of_thread(n->condition));
        find(n->then_body), find(n->else_body);
        guarded_ = outside, by_thread_ = apart;
      }
      const auto* loop = s.as<For>();
      if (!loop) continue;  // copies under other control stay where they are
      nest_.push_back(loop);
      const bool outside = std::exchange(jumps_, jumps_ || may_jump(loop->body));
      find(loop->body);
      jumps_ = outside;
      nest_.pop_back();
    }
  }
  // Whether the computing threads would stand and wait in a loop that should have run ahead.
  bool waits_for_memory(const Copy& c) const {
    return !nest_.empty() && nest_.back()->kind == LoopKind::Pipelined && nest_.back()->stages > 0 &&
           p_.buffer(p_.root(c.from.buffer)).space == Space::Global && p_.buffer(c.to.buffer).space == Space::Shared;
  }
  // Whether the statement is a Map that a ring of cp.async would run ahead of the loop with (async_rings.h), of a tile
  // of rows: a row alone is no reason to leave other tiles to it.
  std::optional<BroughtTile> gathers(const Body& body, size_t i) const {
    const auto* map = body[i].as<Map>();
    const bool may = map && map->vars.size() > 1 && !nest_.empty() && &body == &nest_.back()->body &&
                     nest_.back()->kind == LoopKind::Pipelined && nest_.back()->stages > 1 && !jumps_;
    return may ? brought_tile(p_, launch_, *nest_.back(), i) : std::nullopt;
  }
  // Whether the loop does nothing but bring tiles and multiply. Beside other code (attention) the threads that compute
  // gather: they need the registers that a loader's would have.
  bool only_multiplies(const Body& body) const {
    std::set<const StmtNode*> brings;
    for (size_t i = 0; i < body.size(); ++i)
      if (const auto found = gathers(body, i)) {
        brings.insert(&*body[i]);
        if (found->rows) brings.insert(&*body[*found->rows]);
      }
    return std::ranges::all_of(
        body, [&](const Stmt& s) { return brings.contains(&*s) || s.as<Copy>() || s.as<Let>() || s.as<Gemm>(); });
  }
  // Whether the loader's threads find the same elements as those that compute: from memory, or by the fragment of rows
  // that they fill themselves. Other fragments the computing threads have.
  bool is_known_to_loader(const Stmt& s, const Body& rows) const {
    bool known = true;
    const Buffers filled = written_by(rows, p_);
    walk_exprs({s}, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      const bool of_rows = n && filled.contains(p_.root(n->buffer));
      known =
          known && !names_result(e) && !is_of_thread(e) && (!n || of_rows || !is_of_math(load(n->buffer, {}, e->type)));
    });
    return known;
  }
  // Whether threads may disagree about it: a loader would not know whose value counts.
  bool is_of_thread(const Expr& e) const {
    return std::ranges::any_of(used_vars(e), [&](VarId v) {
      return of_threads_.contains(v) || std::ranges::find(launch_.thread, v) != launch_.thread.end();
    });
  }
  // Values that only the computing threads have.
  void match_result(const Stmt& s) {
    if (const auto* n = s.as<Let>(); n && is_of_thread(n->value)) of_threads_.insert(n->var);
    if (const auto* n = s.as<Let>(); n && is_of_math(n->value)) out_.results.insert(n->var);
    if (const auto* n = s.as<Shuffle>()) out_.results.insert(n->result);
    if (const auto* n = s.as<Vote>()) out_.results.insert(n->result);
    if (const auto* n = s.as<Atomic>()) out_.results.insert(n->result);
    if (const auto* n = s.as<Call>()) out_.results.insert(n->result);
  }
  void ring(const Body& body, size_t at, BufferId id, const Body& rows = {}) {
    FoundRing r;
    r.rows = rows;
    if (names_as_a_whole(launch_.body, id)) return;
    for (size_t i = at + 1; i < body.size(); ++i) {
      if (!mentions(body[i], id)) continue;
      if (!reads_only(body[i], id)) return;
      if (!r.first_use) r.first_use = &*body[i];
      r.last_use = &*body[i];
    }
    // Under a condition a slot is not filled in every turn of the loop around: the turns of one inside are counted, or
    // the turns in which the condition holds, if all that comes in the loop comes in these.
    if (guarded_ && nest_.size() <= *guarded_) {
      if (nest_.empty() || nest_.back()->kind != LoopKind::Pipelined || by_thread_) return;
      r.gate = &body;
    }
    const bool apart = std::ranges::any_of(out_.rings, [&](const FoundRing& other) {
      return !nest_.empty() && !other.nest.empty() && other.nest.back() == nest_.back() && other.gate != r.gate;
    });
    if (apart) return;
    r.counted = guarded_.has_value();
    const Body here(body.begin() + static_cast<std::ptrdiff_t>(at), body.end());
    if (const auto* copy = body[at].as<Copy>()) r.rests = rests_of(*copy);
    const auto elsewhere = accesses_of(launch_.body, id, p_) - accesses_of(here, id, p_);
    if (!r.first_use || elsewhere != std::ssize(r.rests)) return;
    // Where every loop takes as many turns in each turn of those around it, a product counts them.
    if (!nest_.empty()) {
      std::set<VarId> inside = bound_vars(walks_tiles_ ? launch_.body : nest_[0]->body);
      if (walks_tiles_)
        inside.insert(launch_.block.begin(), launch_.block.end());
      else
        inside.insert(nest_[0]->var);
      for (size_t d = walks_tiles_ ? 0 : 1; d < nest_.size(); ++d)
        for (VarId v : used_vars(nest_[d]->extent)) r.counted = r.counted || inside.contains(v);
    }
    for (const For* loop : nest_)
      for (const Expr& e : {loop->extent, loop->begin})
        if (names_result(e) || any_in(e, [](const Expr& x) { return x.as<Load>() != nullptr; })) return;
    // Stages that the program leaves open are ours to choose.
    r.ahead = !nest_.empty() && nest_.back()->kind == LoopKind::Pipelined;
    const auto* copy = body[at].as<Copy>();
    const int64_t bytes = bytes_on_chip(p_.buffer(id)), by_tma = copy ? bytes_in(copy->to, p_) : 0;
    const auto join = [&](FoundRing& with) {
      with.copies.push_back(body[at]), with.tiles.push_back(id), with.bytes += bytes, with.by_tma += by_tma;
      with.rows.insert(with.rows.end(), rows.begin(), rows.end());
      with.rests.insert(with.rests.end(), r.rests.begin(), r.rests.end());
    };
    // Neighbours that are used by the same statements share a ring.
    if (FoundRing* last = out_.rings.empty() ? nullptr : &out_.rings.back();
        last && at > 0 && &*last->copies.back() == &*body[at - 1] && last->first_use == r.first_use &&
        last->last_use == r.last_use) {
      return join(*last);
    }
    r.copies = {body[at]}, r.tiles = {id}, r.nest = nest_, r.bytes = bytes, r.by_tma = by_tma;
    if (FoundRing* with = companion(body, at, r)) {
      join(*with);
      if (place_in(body, r.first_use) < place_in(body, with->first_use)) with->first_use = r.first_use;
      if (place_in(body, r.last_use) > place_in(body, with->last_use)) with->last_use = r.last_use;
      return;
    }
    out_.rings.push_back(std::move(r));
  }
  static size_t place_in(const Body& body, const StmtNode* s) {
    return static_cast<size_t>(std::find_if(body.begin(), body.end(), [&](const Stmt& x) { return &*x == s; }) -
                               body.begin());
  }
  // The ring of the same loop with which the tile may come, where no product of a turn has to wait for what is made of
  // another's: one wait and one release a turn, not one for each tile (measured: 2 to 5%).
  FoundRing* companion(const Body& body, size_t at, const FoundRing& r) {
    if (!r.ahead || !multiplies_brought(*nest_.back(), r.tiles[0])) return nullptr;
    for (FoundRing& other : out_.rings) {
      if (!other.ahead || other.nest != r.nest || other.counted != r.counted) continue;
      const size_t first = place_in(body, &*other.copies[0]);
      if (first >= at) continue;  // of another body
      // The loader copies both where it copies the first: no name may come between.
      const std::set<VarId> used = used_vars(Body{body[at]});
      const bool named = std::any_of(body.begin() + static_cast<std::ptrdiff_t>(first),
                                     body.begin() + static_cast<std::ptrdiff_t>(at), [&](const Stmt& s) {
                                       const auto* let = s.as<Let>();
                                       return let && used.contains(let->var);
                                     });
      if (!named) return &other;
    }
    return nullptr;
  }
  // Whether all operands of the loop's gemms come from global memory as they are, as this tile does.
  bool multiplies_brought(const For& loop, BufferId tile) const {
    const auto comes = [&](BufferId id) { return id == tile || is_brought(id); };
    return !any_in(loop.body, [&](const Stmt& s) {
      const auto* g = s.as<Gemm>();
      return g && !(comes(g->a.buffer) && comes(g->b.buffer));
    });
  }
  bool is_brought(BufferId id) const {
    if (std::ranges::any_of(out_.rings, [&](const FoundRing& r) { return r.brings(id); })) return true;
    return any_in(launch_.body, [&](const Stmt& s) {
      const auto* copy = s.as<Copy>();
      return copy && copy->to.buffer == id && p_.buffer(copy->from.buffer).space == Space::Global &&
             writers(id) == 1 + std::ssize(rests_of(*copy));
    });
  }

  const ProgramTables& p_;
  const Launch& launch_;
  const bool walks_tiles_;
  std::vector<const For*> nest_;
  bool jumps_ = false;             // one of them may be left, or a turn of it, by a jump
  std::optional<size_t> guarded_;  // the loops around the innermost condition around this place
  bool by_thread_ = false;         // one of the conditions around is a thread's own
  std::set<VarId> of_threads_;     // names of a thread's own values
  FoundRings out_;
};

}  // namespace

bool is_moved(const std::vector<FoundRing>& rings, const Stmt& s) {
  return std::ranges::any_of(rings, [&](const FoundRing& r) {
    const auto is_it = [&](const Stmt& x) { return &*x == &*s; };
    return r.has(s) || std::ranges::any_of(r.rows, is_it) || std::ranges::any_of(r.rests, is_it);
  });
}

bool holds_copies(const std::vector<FoundRing>& rings, const Stmt& s) {
  return any_in({s}, [&](const Stmt& x) { return is_moved(rings, x); });
}

FoundRings find_rings(const ProgramTables& program, const Launch& launch, bool walks_tiles) {
  return RingSearch(program, launch, walks_tiles).run();
}

bool loader_reads_memory(const ProgramTables& program, const Launch& launch, const FoundRings& found) {
  bool reads = false;
  const auto look = [&](const Expr& e) {
    reads = reads || any_in(e, [&](const Expr& x) {
              const auto* n = x.as<Load>();
              return n && program.buffer(n->buffer).space == Space::Global;
            });
  };
  const auto go = [&](const auto& self, const Body& body) -> void {
    for (const Stmt& s : body) {
      if (const auto* let = s.as<Let>()) {
        if (!found.results.contains(let->var)) look(let->value);
      } else if (is_moved(found.rings, s)) {
        for_each_expr(s, look);
      } else if (holds_copies(found.rings, s) && (s.as<For>() || s.as<If>())) {
        for_each_expr(s, look);
        for_each_body(s, [&](const Body& inner) { self(self, inner); });
      }
    }
  };
  go(go, launch.body);
  return reads;
}

bool tensors_stand_by_names(const ProgramTables& program, const Launch& launch) {
  std::set<VarId> named = bound_vars(launch.body);
  named.insert(launch.block.begin(), launch.block.end());
  return std::ranges::any_of(used_roots(launch.body, program), [&](BufferId id) {
    return std::ranges::any_of(vars_of_buffer(program, id), [&](VarId v) { return named.contains(v); });
  });
}

std::string ring_misfit(const ProgramTables& p, const Copy& c) {
  return p.buffer(c.to.buffer).rank() == 1 ? tma_misfit_as_row(c, p) : tma_misfit(c, p);
}

}  // namespace tilewright::analysis
