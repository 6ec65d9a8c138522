#include "passes/tile/arrive_apart.h"

#include <algorithm>
#include <map>

#include "analysis/anywhere.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Arrivals {
 public:
  Arrivals(TileProgram& p, const Launch& launch, int64_t room) : p_(p), room_(room) {
    std::map<BufferId, int64_t> slots;
    walk(launch.body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      if (!loop || loop->kind != LoopKind::Pipelined) return;
      walk(loop->body, [&](const Stmt& x) {
        if (const auto* copy = x.as<Copy>()) slots[p.root(copy->to.buffer)] = std::max<int64_t>(loop->stages, 1);
      });
    });
    for (BufferId id : used_roots(launch.body, p))
      if (p.buffer(id).space == Space::Shared)
        room_ -= bytes_on_chip(p.buffer(id)) * (slots.contains(id) ? slots[id] : 1);
  }

  // The loop with a tile of its own for what comes to one that is changed; none.
  std::optional<Body> apart(const Stmt& s) {
    const auto* given = s.as<For>();
    if (!given || given->kind != LoopKind::Pipelined || given->stages < 1) return std::nullopt;
    For loop = *given;
    bool found = false;
    for (size_t i = 0; i < loop.body.size(); ++i) found = arrival(loop.body, i) || found;
    return found ? std::optional(Body{make_stmt(std::move(loop), s->location)}) : std::nullopt;
  }

 private:
  bool arrival(Body& body, size_t at) {
    const auto* copy = body[at].as<Copy>();
    if (!copy || !copy->completion.immediate() || copy->combine != ir::Combine::None || !is_tile(copy->to) ||
        p_.buffer(p_.root(copy->from.buffer)).space != Space::Global)
      return false;
    const BufferId tile = copy->to.buffer;
    const auto changes = std::find_if(body.begin() + static_cast<std::ptrdiff_t>(at) + 1, body.end(),
                                      [&](const Stmt& s) { return changed_roots({s}, p_).contains(tile); });
    if (changes == body.end() || bytes_on_chip(p_.buffer(tile)) > room_) return false;
    const BufferId own = p_.new_buffer(arriving(tile));
    const auto map = in_place(*changes, tile, own);
    if (!map) return p_.buffers.pop_back(), false;
    room_ -= bytes_on_chip(p_.buffer(tile));
    Copy arrives = *copy;
    arrives.to.buffer = own;
    const LocationId place = body[at]->location;
    for (auto s = body.begin() + static_cast<std::ptrdiff_t>(at) + 1; s != changes; ++s)
      *s = with_buffers({*s}, {{tile, own}})[0];
    *changes = *map;
    body[at] = make_stmt(std::move(arrives), place);
    return true;
  }
  bool is_tile(const Region& r) const {
    const Buffer& b = p_.buffer(r.buffer);
    return b.space == Space::Shared && !b.is_view() && b.strides.empty() && b.layout.kind == LayoutHint::None &&
           is_whole(r, b) && std::ranges::none_of(p_.buffers, [&](const Buffer& x) { return x.root == r.buffer; });
  }
  Buffer arriving(BufferId tile) const {
    Buffer b = p_.buffer(tile);
    b.name += "_in";
    return b;
  }

  // The map that reads what arrives and leaves what it is to be; none: it does not make each element of its own.
  std::optional<Stmt> in_place(const Stmt& s, BufferId tile, BufferId own) const {
    const auto* given = s.as<Map>();
    if (!given) return std::nullopt;
    std::optional<std::vector<Expr>> point;
    bool fits = true;
    const auto at_point = [&](const std::vector<Expr>& index) {
      if (!point) point = index;
      for (size_t d = 0; d < index.size(); ++d) fits = fits && equal(index[d], (*point)[d]);
    };
    walk(given->body, [&](const Stmt& x) {
      fits = fits && (x.as<Store>() || x.as<Let>() || x.as<If>());
      if (const auto* n = x.as<Store>(); n && n->to.buffer == tile) at_point(n->to.indices);
    });
    walk_exprs(given->body, [&](const Expr& e) {
      if (const auto* n = e.as<Load>(); n && n->buffer == tile) at_point(n->indices);
      fits = fits && !analysis::may_divide_by_zero(e);  // which a condition may keep it from
    });
    if (!fits || !point || !covers(*given, *point, tile)) return std::nullopt;
    Map map = *given;
    int64_t stores = 0;
    map.body.clear();
    for (const Stmt& x : given->body) {
      const auto* branch = x.as<If>();
      const auto* store = branch ? only_store(*branch, tile) : x.as<Store>();
      const bool is_it = store && store->to.buffer == tile;
      stores += is_it;
      if (!is_it || !branch) {
        map.body.push_back(x);
        continue;
      }
      const Expr value = select(branch->condition, store->value, load(tile, *point, p_.buffer(tile).type));
      map.body.push_back(make_stmt(Store{store->to, value}, x->location));
    }
    int64_t all = 0;
    walk(map.body, [&](const Stmt& x) { all += x.as<Store>() && x.as<Store>()->to.buffer == tile; });
    if (stores != 1 || all != 1) return std::nullopt;
    map.body = rewrite_exprs(map.body, [&](const Expr& e) -> std::optional<Expr> {
      const auto* n = e.as<Load>();
      return n && n->buffer == tile ? std::optional(load(own, n->indices, e->type)) : std::nullopt;
    });
    return make_stmt(std::move(map), s->location);
  }
  static const Store* only_store(const If& branch, BufferId tile) {
    const auto* store =
        branch.then_body.size() == 1 && branch.else_body.empty() ? branch.then_body[0].as<Store>() : nullptr;
    return store && store->to.buffer == tile ? store : nullptr;
  }
  // Whether the points are the tile's elements.
  bool covers(const Map& map, const std::vector<Expr>& point, BufferId tile) const {
    if (point.size() != map.vars.size()) return false;
    for (size_t d = 0; d < point.size(); ++d) {
      const auto* v = point[d].as<Var>();
      const auto at = v ? std::ranges::find(map.vars, v->id) : map.vars.end();
      if (at == map.vars.end()) return false;
      const auto extent = constant_int(map.extents[static_cast<size_t>(at - map.vars.begin())]);
      if (!extent || extent != constant_int(p_.buffer(tile).shape[d])) return false;
      for (size_t other = 0; other < d; ++other)
        if (equal(point[other], point[d])) return false;
    }
    return true;
  }

  TileProgram& p_;
  int64_t room_;  // bytes of shared memory
};

}  // namespace

void arrive_apart(TileProgram& program, const target::GpuTarget& target) {
  for (Launch& launch : program.launches) {
    Arrivals arrivals(program, launch, target.shared_bytes);
    launch.body = rewrite(launch.body, [&](const Stmt& s) { return arrivals.apart(s); });
  }
}

}  // namespace tilewright::passes
