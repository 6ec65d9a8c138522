#include "passes/tile/spread_pairs.h"

#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kAtom = 8;    // columns of an accumulator's atom, of which a thread holds two
constexpr int64_t kPanel = 32;  // columns of a panel of 128 bytes, of which a thread holds a pair in each of four atoms

class PairSpreader {
 public:
  explicit PairSpreader(TileProgram& p) : p_(p) {
    for (const Launch& launch : p_.launches) look_at(launch.body);
    keep_consistent();
  }

  void run() {
    if (sums_.empty()) return;
    for (Launch& launch : p_.launches) {
      const Body body = rewrite_exprs(launch.body, [&](const Expr& e) -> std::optional<Expr> {
        const auto* n = e.as<Load>();
        return n && is_spread(n->buffer) ? std::optional(load(n->buffer, spread(n->buffer, n->indices), e->type))
                                         : std::nullopt;
      });
      launch.body = rewrite(body, [&](const Stmt& s) -> std::optional<Body> {
        const auto* map = s.as<Map>();
        if (!map || is_alike_along_columns(*map)) return std::nullopt;  // of either order
        Map out = *map;
        out.body = rewrite(map->body, [&](const Stmt& x) { return element_of(x); });
        return Body{make_stmt(std::move(out), s->location)};
      });
    }
  }

 private:
  // What adds to scratch by TMA, from where, and who else touches either in another way than by elements.
  void look_at(const Body& body) {
    std::map<BufferId, int> outside_maps;  // elements that are written
    walk(body, [&](const Stmt& s) {
      if (const BufferId to = written_by(s); to.valid()) ++outside_maps[to];
      if (const auto* map = s.as<Map>())
        walk(map->body, [&](const Stmt& x) {
          if (const BufferId to = written_by(x); to.valid()) --outside_maps[to];
        });
      if (const auto* gemm = s.as<Gemm>()) accumulators_.insert(gemm->c.buffer);
      if (const auto* print = s.as<Print>(); print && print->buffer.valid()) others_.insert(p_.root(print->buffer));
      if (const auto* copy = s.as<Copy>(); copy && is_sum(*copy)) {
        sums_[copy->to.buffer].insert(copy->from.buffer), targets_[copy->from.buffer].insert(copy->to.buffer);
        for (const Region* r : {&copy->from, &copy->to})
          if (*constant_int(r->min.back()) % kPanel != 0 || *constant_int(r->extent.back()) % kPanel != 0)
            narrow_.insert(r->buffer);
        return;
      }
      for_each_region(s, [&](const Region& r) {
        if (r.valid()) others_.insert(p_.root(r.buffer));
      });
    });
    walk_exprs(body, [&](const Expr& e) {
      if (const auto* pointer = e.as<Address>()) others_.insert(p_.root(pointer->buffer));
    });
    for (const auto& [buffer, count] : outside_maps)
      if (count > 0) others_.insert(p_.root(buffer));
  }
  // By elements.
  static BufferId written_by(const Stmt& s) {
    if (const auto* n = s.as<Store>()) return n->to.buffer;
    if (const auto* n = s.as<Atomic>()) return n->to.buffer;
    return {};
  }
  bool is_sum(const Copy& c) const {
    return c.combine == ir::Combine::Add && c.completion.queue == Queue::BulkStore && may_be_scratch(c.to) &&
           may_be_staged(c.from);
  }
  // Groups of columns stay together: the region is of whole ones.
  static bool has_whole_groups(const Region& r, const Buffer& b) {
    const auto first = constant_int(r.min.back()), count = constant_int(r.extent.back()),
               columns = constant_int(b.shape.back());
    return first && count && columns && *first % kAtom == 0 && *count % kAtom == 0 && *columns % kAtom == 0;
  }
  bool may_be_scratch(const Region& r) const {
    const Buffer& b = p_.buffer(r.buffer);
    return b.space == Space::Global && b.workspace && b.type == f32 && !b.is_view() && b.rank() >= 2 &&
           b.strides.empty() && has_whole_groups(r, b);
  }
  bool may_be_staged(const Region& r) const {
    const Buffer& b = p_.buffer(r.buffer);
    return b.space == Space::Shared && b.type == f32 && !b.is_view() && b.rank() >= 2 && b.strides.empty() &&
           has_whole_groups(r, b);
  }
  // Whether all that is stored to the tile comes from accumulators: other threads hold other elements.
  bool holds_accumulators(BufferId tile) const {
    bool any = false, all = true;
    for (const Launch& launch : p_.launches)
      walk(launch.body, [&](const Stmt& s) {
        if (s.as<Atomic>() && s.as<Atomic>()->to.buffer == tile) all = false;
        const auto* store = s.as<Store>();
        if (!store || store->to.buffer != tile) return;
        bool found = false;
        walk(store->value, [&](const Expr& e) {
          const auto* n = e.as<Load>();
          found = found || (n && accumulators_.contains(n->buffer));
        });
        any = true, all = all && found;
      });
    return any && all;
  }
  // Scratch and the tiles that it is added to from change together or not at all.
  void keep_consistent() {
    std::set<BufferId> viewed;
    for (const Buffer& b : p_.buffers)
      if (b.is_view()) viewed.insert(b.root);
    const auto is_fit = [&](BufferId id) { return !others_.contains(id) && !viewed.contains(id); };
    for (bool changed = true; changed;) {
      changed = std::erase_if(sums_, [&](const auto& sum) {
                  return !is_fit(sum.first) || !std::ranges::all_of(sum.second, [&](BufferId tile) {
                    return is_fit(tile) && holds_accumulators(tile) &&
                           std::ranges::all_of(targets_[tile], [&](BufferId to) { return sums_.contains(to); });
                  });
                }) > 0;
    }
    for (const auto& [scratch, tiles] : sums_) groups_[scratch] = kPanel;
    for (bool changed = true; changed;) {
      changed = false;
      for (const auto& [scratch, tiles] : sums_) {
        int64_t group = std::min(groups_.at(scratch), has_panels(scratch) ? kPanel : kAtom);
        for (BufferId tile : tiles)
          group = std::min({group, groups_.try_emplace(tile, kPanel).first->second, has_panels(tile) ? kPanel : kAtom});
        for (BufferId tile : tiles) changed = changed || groups_.at(tile) != group, groups_.at(tile) = group;
        changed = changed || groups_.at(scratch) != group, groups_.at(scratch) = group;
      }
    }
  }
  bool is_spread(BufferId id) const { return groups_.contains(id); }
  // Rows are whole panels of 128 bytes, and so are the parts of them that are added.
  bool has_panels(BufferId id) const {
    return !narrow_.contains(id) && p_.buffer(id).panel == 0 &&
           constant_int(p_.buffer(id).shape.back()).value_or(1) % kPanel == 0;
  }

  // Of a panel the pairs of two columns of each atom, and then those of its other two: neighbouring rows' chunks of 16
  // bytes, which are exchanged by their last two bits, stay apart. Of other tiles the even columns of each atom.
  std::vector<Expr> spread(BufferId id, std::vector<Expr> index) const {
    Expr& column = index.back();
    const auto number = [&](int64_t n) { return constant(column->type, n); };
    const auto divided = [&](const Expr& e, int64_t n) { return binary(BinaryOp::FloorDiv, e, number(n)); };
    const auto rest = [&](const Expr& e, int64_t n) { return binary(BinaryOp::FloorMod, e, number(n)); };
    const int64_t group = groups_.at(id);
    const Expr first = mul(divided(column, group), number(group));
    if (group == kAtom) {
      column = add(add(first, mul(rest(column, 2), number(kAtom / 2))), divided(rest(column, kAtom), 2));
    } else {
      const Expr half = divided(rest(column, kAtom), kAtom / 2), atom = divided(rest(column, kPanel), kAtom);
      column =
          add(add(first, mul(half, number(kPanel / 2))), add(mul(atom, number(kAtom / 2)), rest(column, kAtom / 2)));
    }
    return index;
  }
  // A store of one value to whole rows of columns, in whichever order: as it stands it may be wide.
  bool is_alike_along_columns(const Map& map) const {
    const auto* store = map.body.size() == 1 ? map.body[0].as<Store>() : nullptr;
    if (!store || !is_spread(store->to.buffer)) return false;
    if (constant_int(map.extents.back()).value_or(1) % groups_.at(store->to.buffer) != 0) return false;
    const VarId along = map.vars.back();
    const Expr& column = store->to.indices.empty() ? Expr() : store->to.indices.back();
    const auto* v = column ? column.as<Var>() : nullptr;
    if (!v || v->id != along || used_vars(store->value).contains(along)) return false;
    for (size_t d = 0; d + 1 < store->to.indices.size(); ++d)
      if (used_vars(store->to.indices[d]).contains(along)) return false;
    return true;
  }
  std::optional<Body> element_of(const Stmt& s) const {
    if (const auto* n = s.as<Store>(); n && is_spread(n->to.buffer)) {
      Store store = *n;
      store.to.indices = spread(store.to.buffer, store.to.indices);
      return Body{make_stmt(std::move(store), s->location)};
    }
    if (const auto* n = s.as<Atomic>(); n && is_spread(n->to.buffer)) {
      Atomic atomic = *n;
      atomic.to.indices = spread(atomic.to.buffer, atomic.to.indices);
      return Body{make_stmt(std::move(atomic), s->location)};
    }
    return std::nullopt;
  }

  TileProgram& p_;
  std::set<BufferId> accumulators_, others_;
  std::set<BufferId> narrow_;                    // what is added in parts of panels, or to them
  std::map<BufferId, int64_t> groups_;           // of scratch and tiles: so many columns have another order among them
  std::map<BufferId, std::set<BufferId>> sums_;  // of scratch: the tiles that TMA adds to it from
  std::map<BufferId, std::set<BufferId>> targets_;  // of a tile: what it is added to
};

}  // namespace

TileProgram spread_pairs(TileProgram program) {
  PairSpreader(program).run();
  return program;
}

}  // namespace tilewright::passes
