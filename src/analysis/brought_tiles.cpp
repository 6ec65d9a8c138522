#include "analysis/brought_tiles.h"

#include "analysis/accessed.h"
#include "analysis/async_copies.h"
#include "analysis/body_order.h"
#include "analysis/divisibility.h"
#include "analysis/slope.h"
#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kPieceBits = 128;  // of one cp.async

class Brought {
 public:
  Brought(const ProgramTables& p, const Launch& launch, const For& loop) : p_(p), launch_(launch), loop_(loop) {}

  std::optional<BroughtTile> at(size_t i) const {
    const Body& body = loop_.body;
    const BufferId id = filled_by(body[i]);
    if (!id.valid() || !is_known_ahead(body[i])) return std::nullopt;
    for (size_t k = 0; k < i; ++k)  // of the turn before
      if (accesses_of({body[k]}, id, p_) > 0) return std::nullopt;
    BroughtTile out{i, id};
    for (BufferId read : read_by({body[i]}, p_)) {
      if (writes_of(body, read, p_) == 0) continue;
      if (out.rows || p_.buffer(read).space != Space::Fragment) return std::nullopt;
      out.rows = rows_of(i, read);
      if (!out.rows) return std::nullopt;
    }
    return no_tile_of(p_, launch_, loop_, id).empty() ? std::optional(out) : std::nullopt;
  }

 private:
  // The tile that the statement fills in pieces of 16 bytes; invalid: it does something else.
  BufferId filled_by(const Stmt& s) const {
    if (const auto* copy = s.as<Copy>())
      return comes_by_async_copies(*copy, p_.buffer(copy->to.buffer), p_) ? copy->to.buffer : BufferId{};
    const auto* map = s.as<Map>();
    const auto* store = map && !map->body.empty() ? map->body.back().as<Store>() : nullptr;
    if (!store || store->queue != Queue::None) return {};
    const BufferId id = store->to.buffer;
    const auto place = followed(store->to.indices, map->vars);
    const bool fits = p_.buffer(id).space == Space::Shared && place && map->vars.size() == place->dims.size() &&
                      place->dims.back() + 1 == static_cast<int>(map->vars.size()) && writes_whole(s, id, p_) &&
                      is_wide(*map, *store);
    return fits ? id : BufferId{};
  }
  // Whether a turn's statement is known before the turn: names of the loop's body do not say what it does.
  bool is_known_ahead(const Stmt& s) const {
    const std::set<VarId> inside = bound_vars(loop_.body), own = bound_vars(Body{s});
    for (BufferId id : used_buffers({s}))
      if (stands_by(p_, id, inside) || stands_by(p_, id, {loop_.var})) return false;
    return std::ranges::none_of(used_vars(Body{s}), [&](VarId v) { return inside.contains(v) && !own.contains(v); });
  }
  // The Map before statement `i` that fills the fragment, which that statement alone reads.
  std::optional<size_t> rows_of(size_t i, BufferId fragment) const {
    const Body& body = loop_.body;
    for (size_t k = 0; k < i; ++k) {
      if (!body[k].as<Map>() || !written_by({body[k]}, p_).contains(fragment)) continue;
      bool fits = writes_of(body, fragment, p_) == 1 && writes_whole(body[k], fragment, p_) &&
                  written_by({body[k]}, p_).size() == 1 && is_known_ahead(body[k]) &&
                  accesses_of(launch_.body, fragment, p_) ==
                      accesses_of({body[k]}, fragment, p_) + accesses_of({body[i]}, fragment, p_);
      for (BufferId id : read_by({body[k]}, p_)) fits = fits && writes_of(body, id, p_) == 0;
      return fits ? std::optional(k) : std::nullopt;
    }
    return std::nullopt;
  }
  // Whether what lies side by side in a row of the tile is whole 16-byte pieces of the tensor's, as they lie there, or
  // zeros.
  bool is_wide(const Map& map, const Store& store) const {
    Substitution names;
    for (size_t k = 0; k + 1 < map.body.size(); ++k) {
      const auto* n = map.body[k].as<Let>();
      if (!n) return false;
      names[n->var] = substitute(n->value, names);
    }
    const auto* either = store.value.as<Select>();
    const auto* other = either ? either->b.as<Const>() : nullptr;
    if (either && (!other || other->bits != 0)) return false;
    const auto* from = (either ? either->a : store.value).as<Load>();
    const int64_t piece = kPieceBits / std::max(1, static_cast<int>(p_.buffer(store.to.buffer).type.bits));
    if (!from || from->indices.empty() || constant_int(map.extents.back()).value_or(0) % piece != 0) return false;
    // A piece begins at a multiple of its elements; its lanes count on from there.
    const VarId lane = map.vars.back();
    const DType type = p_.var(lane).type;
    const auto plain = [&](const Expr& e) { return without_lanes(substitute(e, names), lane, piece); };
    if (either && used_vars(plain(either->condition)).contains(lane)) return false;
    std::vector<Expr> index;
    for (const Expr& e : from->indices) index.push_back(plain(e));
    if (slope(index.back(), lane) != 1) return false;
    for (size_t d = 0; d + 1 < index.size(); ++d)
      if (used_vars(index[d]).contains(lane)) return false;
    Copy rows;
    rows.from.buffer = from->buffer, rows.from.min = index, rows.to = whole(store.to.buffer, p_);
    rows.from.min.back() = substitute(index.back(), {{lane, constant(type, int64_t{0})}});
    for (size_t d = 0; d < index.size(); ++d)
      rows.from.extent.push_back(d + 1 < index.size() ? constant(1) : constant(piece));
    return p_.root(from->buffer) == from->buffer && !p_.buffer(from->buffer).address &&
           comes_by_async_copies(rows, p_.buffer(store.to.buffer), p_);
  }
  // With quotients in which the lanes of a piece make no difference said of its first lane, which keeps the variable's
  // name there no more: x // d and x % d where a piece divides d and begins at a multiple of itself.
  Expr without_lanes(const Expr& e, VarId lane, int64_t piece) const {
    return rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
      const auto* n = x.as<Binary>();
      if (!n || (n->op != BinaryOp::FloorDiv && n->op != BinaryOp::FloorMod)) return std::nullopt;
      const int64_t d = constant_int(n->b).value_or(0);
      const Expr inner = without_lanes(n->a, lane, piece);
      if (d <= 0 || d % piece != 0 || slope(inner, lane) != 1) return std::nullopt;
      const Expr first = substitute(inner, {{lane, constant(p_.var(lane).type, int64_t{0})}});
      if (power_of_two_divisor(first, p_) % piece != 0) return std::nullopt;
      const Expr of_first = binary(n->op, first, n->b);
      if (n->op == BinaryOp::FloorDiv) return of_first;
      return add(of_first, cast(var(lane, p_.var(lane).type), x->type));
    });
  }

  const ProgramTables& p_;
  const Launch& launch_;
  const For& loop_;
};

}  // namespace

std::optional<BroughtTile> brought_tile(const ProgramTables& program, const Launch& launch, const For& loop,
                                        size_t at) {
  return Brought(program, launch, loop).at(at);
}

std::string no_tile_of(const ProgramTables& p, const Launch& launch, const For& loop, BufferId tile) {
  const std::string& name = p.buffer(tile).name;
  if (writes_of(loop.body, tile, p) != 1) return fmt::format("'{}' is written twice", name);
  if (names_as_a_whole(launch.body, tile)) return fmt::format("'{}' is used as a whole", name);
  if (accesses_of(launch.body, tile, p) != accesses_of(loop.body, tile, p))
    return fmt::format("'{}' is used outside of the loop", name);
  return "";
}

int writes_of(const Body& body, BufferId id, const ProgramTables& p) {
  int count = 0;
  walk(body, [&](const Stmt& s) {
    for (const Effect& e : effects_of(s).list)
      count += e.access != Access::Read && e.region.valid() && may_overlap(p.root(e.region.buffer), id, p);
  });
  return count;
}

}  // namespace tilewright::analysis
