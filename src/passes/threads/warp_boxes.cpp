#include "passes/threads/warp_boxes.h"

#include "analysis/collectives.h"
#include "analysis/panels.h"
#include "analysis/tma.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/threads/collectives.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kAtom = 1024;  // bytes after which swizzled rows repeat: where TMA may begin to read
constexpr int64_t kGroupWarps = kWarpgroupThreads / kWarpThreads;

// Who touches a tile.
struct Uses {
  std::vector<Stmt> maps, copies;
  std::set<const Role*> roles;
  bool beside_products = false, others = false;
};

class WarpBoxes {
 public:
  WarpBoxes(const ProgramTables& p, const Launch& launch, const Placement& placement,
            const analysis::Uniformity& threads)
      : p_(p), placement_(placement), threads_(threads) {
    for (const Buffer& b : p_.buffers)
      if (b.is_view()) uses_[b.root].others = true;
    walk(launch.body, [&](const Stmt& s) {
      const auto* n = s.as<Drain>();
      keeps_order_ = keeps_order_ || (n && n->queue == Queue::BulkStore && n->written);
    });
    look_at(launch.body, nullptr, false);
  }

  std::map<BufferId, WarpBox> run() const {
    std::map<BufferId, WarpBox> out;
    for (const auto& [tile, uses] : uses_) {
      if (uses.others || !uses.beside_products || uses.maps.empty() || uses.roles.size() != 1) continue;
      const Role* role = *uses.roles.begin();
      if (!role || role->begin % kWarpgroupThreads != 0 || (role->end - role->begin) % kWarpgroupThreads != 0) continue;
      if (auto box = box_of(tile, uses, (role->end - role->begin) / kWarpThreads)) out.emplace(tile, std::move(*box));
    }
    return out;
  }

 private:
  static bool is_product(const Stmt& s) { return s.as<Gemm>() != nullptr; }
  // Whether one of its loops has products and other code: a warpgroup that waits for nobody does the one beside the
  // other's. Where loops only multiply, one box for all is as fast (products of an H200, 1.00 to 1.02).
  static bool computes_beside_products(const Body& body) {
    bool found = false;
    walk(body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      found = found || (loop && std::ranges::any_of(loop->body, is_product) &&
                        std::ranges::any_of(loop->body, [](const Stmt& x) { return x.as<Map>() || x.as<Reduce>(); }));
    });
    return found;
  }
  void look_at(const Body& body, const Role* role, bool multiplies) {
    for (const Stmt& s : body) {
      const auto* map = s.as<Map>();
      const auto* store = map && map->body.size() == 1 ? map->body[0].as<Store>() : nullptr;
      const auto* copy = s.as<Copy>();
      const bool leaves =
          copy && copy->completion.queue == Queue::BulkStore && !analysis::is_of_one_thread(s, threads_);
      const auto* loop = s.as<For>();
      bool around = false;  // it has statements of its own
      if (!map) {
        bool inside = multiplies;
        if (loop && loop->kind == LoopKind::Grid)
          inside = computes_beside_products(loop->body);
        else if (loop)
          inside = std::ranges::any_of(loop->body, is_product);
        for_each_body(s, [&](const Body& inner) {
          around = true;
          look_at(inner, s.as<Role>() ? s.as<Role>() : role, inside);
        });
      }
      std::set<BufferId> seen;
      for (BufferId id : around ? named_by(s) : used_buffers({s})) seen.insert(p_.root(id));
      for (BufferId id : seen) {
        if (p_.buffer(id).space != Space::Shared) continue;
        Uses& uses = uses_[id];
        uses.roles.insert(role);
        if (store && store->to.buffer == id && !reads(store->value, id)) {
          uses.maps.push_back(s);
        } else if (leaves && (copy->combine == ir::Combine::Add || !keeps_order_) && copy->from.buffer == id &&
                   is_whole(copy->from, p_.buffer(id))) {
          uses.copies.push_back(s), uses.beside_products = uses.beside_products || multiplies;
        } else {
          uses.others = true;
        }
      }
    }
  }
  static bool reads(const Expr& value, BufferId id) {
    bool out = false;
    walk(value, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      const auto* pointer = e.as<Address>();
      out = out || (n && n->buffer == id) || (pointer && pointer->buffer == id);
    });
    return out;
  }
  static std::set<BufferId> named_by(const Stmt& s) {
    std::set<BufferId> out;
    for (const Effect& e : effects_of(s).list)
      if (e.region.valid()) out.insert(e.region.buffer);
    return out;
  }

  std::optional<WarpBox> box_of(BufferId tile, const Uses& uses, int64_t warps) const {
    const Buffer& b = p_.buffer(tile);
    std::optional<WarpBox> out;
    for (const Stmt& s : uses.maps) {
      const auto now = written(*s.as<Map>(), s, b, warps);
      if (!now || (out && !are_same(*out, *now))) return std::nullopt;
      out = now;
    }
    return out && has_panels(tile, *out, warps) &&
                   std::ranges::all_of(uses.copies, [&](const Stmt& s) { return are_alike(*s.as<Copy>()); })
               ? out
               : std::nullopt;
  }
  static bool are_same(const WarpBox& a, const WarpBox& b) {
    return std::ranges::equal(a.sides, b.sides, [](const auto& x, const auto& y) {
      return std::tie(x.first, x.of_warp, x.of_group, x.extent) == std::tie(y.first, y.of_warp, y.of_group, y.extent);
    });
  }
  // What the warps write of the tile, if that is a box each.
  std::optional<WarpBox> written(const Map& map, const Stmt& s, const Buffer& tile, int64_t warps) const {
    const FragmentLayout* points = placement_.points_of(s);
    if (!points || points->copy_count() != 1 || points->ctas() != 1 || points->is_padded() ||
        points->threads() != warps * kWarpThreads || static_cast<size_t>(points->rank()) != map.vars.size())
      return std::nullopt;
    const std::vector<Expr>& indices = map.body[0].as<Store>()->to.indices;
    // Of each dimension of the tile: the variable of the map that it follows, and how; -1: one index.
    std::vector<int> follows(indices.size(), -1);
    std::vector<std::vector<int64_t>> index(indices.size());
    for (size_t d = 0; d < indices.size(); ++d) {
      const std::set<VarId> used = used_vars(indices[d]);
      for (size_t v = 0; v < map.vars.size(); ++v)
        if (used.contains(map.vars[v])) {
          if (follows[d] >= 0) return std::nullopt;
          follows[d] = static_cast<int>(v);
        }
      if (used.size() > (follows[d] >= 0 ? 1u : 0u)) return std::nullopt;
      const int64_t count = follows[d] < 0 ? 1 : points->shape()[static_cast<size_t>(follows[d])];
      for (int64_t i = 0; i < count; ++i) {
        const Expr at =
            follows[d] < 0
                ? indices[d]
                : substitute(indices[d], {{map.vars[static_cast<size_t>(follows[d])], constant(indices[d]->type, i)}});
        const auto value = constant_int(at);
        if (!value) return std::nullopt;
        index[d].push_back(*value);
      }
    }
    return boxes(*points, follows, index, tile, warps);
  }
  std::optional<WarpBox> boxes(const FragmentLayout& points, const std::vector<int>& follows,
                               const std::vector<std::vector<int64_t>>& index, const Buffer& tile,
                               int64_t warps) const {
    const size_t rank = follows.size();
    std::vector<std::vector<int64_t>> low(static_cast<size_t>(warps), std::vector<int64_t>(rank, INT64_MAX));
    std::vector<std::vector<int64_t>> high(static_cast<size_t>(warps), std::vector<int64_t>(rank, -1));
    std::vector<int64_t> count(static_cast<size_t>(warps), 0);
    std::vector<bool> seen(static_cast<size_t>(points.elements()), false);
    std::vector<int64_t> point(points.shape().size(), 0);
    const int64_t elements = points.elements();
    for (int64_t e = 0; e < elements; ++e) {
      int64_t rest = e;
      for (size_t d = point.size(); d-- > 0; rest /= points.shape()[d]) point[d] = rest % points.shape()[d];
      const auto w = static_cast<size_t>(points.place(point).thread / kWarpThreads);
      ++count[w];
      int64_t linear = 0;
      for (size_t d = 0; d < rank; ++d) {
        const int64_t at = index[d][follows[d] < 0 ? 0 : static_cast<size_t>(point[static_cast<size_t>(follows[d])])];
        low[w][d] = std::min(low[w][d], at), high[w][d] = std::max(high[w][d], at);
        linear = linear * constant_int(tile.shape[d]).value_or(0) + at;
      }
      if (linear < 0 || linear >= elements || seen[static_cast<size_t>(linear)]) return std::nullopt;
      seen[static_cast<size_t>(linear)] = true;
    }
    // All of the tile is written, each element once, and each warp has as many as its box.
    int64_t all = 1;
    for (const Expr& x : tile.shape) all *= constant_int(x).value_or(0);
    if (all != elements) return std::nullopt;
    WarpBox out;
    for (size_t d = 0; d < rank; ++d) {
      WarpBox::Side side{low[0][d], 0, 0, high[0][d] - low[0][d] + 1};
      if (warps > 1) side.of_warp = low[1][d] - low[0][d];
      if (warps > kGroupWarps) side.of_group = low[kGroupWarps][d] - low[0][d];
      out.sides.push_back(side);
    }
    for (int64_t w = 0; w < warps; ++w) {
      int64_t volume = 1;
      for (size_t d = 0; d < rank; ++d) {
        const WarpBox::Side& side = out.sides[d];
        const int64_t first = first_of(side, w);
        const auto number = static_cast<size_t>(w);
        if (low[number][d] != first || high[number][d] != first + side.extent - 1) return std::nullopt;
        volume *= side.extent;
      }
      if (volume != count[static_cast<size_t>(w)]) return std::nullopt;
    }
    return out;
  }
  static int64_t first_of(const WarpBox::Side& side, int64_t warp) {
    return side.first + side.of_warp * (warp % kGroupWarps) + side.of_group * (warp / kGroupWarps);
  }
  // Whether TMA may take each box by itself: of whole panels, from where their rows' swizzle begins again.
  bool has_panels(BufferId tile, const WarpBox& box, int64_t warps) const {
    const Buffer& b = p_.buffer(tile);
    const int64_t panel = analysis::box_columns(p_, tile);
    if (panel == 0 || box.sides.empty()) return false;
    const WarpBox::Side& columns = box.sides.back();
    if (columns.extent % panel != 0) return false;
    for (int64_t w = 0; w < warps; ++w) {
      if (first_of(columns, w) % panel != 0) return false;
      int64_t row = 0;
      for (size_t d = 0; d + 1 < box.sides.size(); ++d)
        row = row * *constant_int(b.shape[d]) + first_of(box.sides[d], w);
      if (row * panel * b.type.bits / 8 % kAtom != 0) return false;
    }
    return true;
  }
  // Whether both sides of the copy have the same extents beside those of 1.
  static bool are_alike(const Copy& c) {
    const auto extents = [](const Region& r) {
      std::vector<int64_t> out;
      for (const Expr& e : r.extent)
        if (const int64_t n = constant_int(e).value_or(0); n != 1) out.push_back(n);
      return out;
    };
    return !c.im2col.present() && extents(c.from) == extents(c.to);
  }

  const ProgramTables& p_;
  const Placement& placement_;
  const analysis::Uniformity& threads_;
  bool keeps_order_ = false;  // of stores, which is a thread's
  std::map<BufferId, Uses> uses_;
};

}  // namespace

std::map<BufferId, WarpBox> warp_boxes(const ProgramTables& program, const Launch& launch, const Placement& placement,
                                       const analysis::Uniformity& threads) {
  return WarpBoxes(program, launch, placement, threads).run();
}

}  // namespace tilewright::passes
