#include "passes/threads/late_sums.h"

#include <cmath>

#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/lowering.h"
#include "scalar/functions.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What a statement does with the parts of a result.
enum class Use : uint8_t {
  None,
  Starts,  // with zero; where what is joined twice counts once, with anything
  Adds,    // what is joined is a part as well, and what a sum is multiplied by is of the whole row
  Reads,
};

// How the parts that a Reduce leaves are joined; none: in whose order they are joined tells. Sums are the engine's to
// order, those of integers wrap around alike in any order, and of the others the order does not tell: of NaN too, which
// they ignore or keep, and of zeros, of which the signs are ordered.
std::optional<Join> joining(const Reduce& r, DType type) {
  if (type.is_packed() || type.is_bool()) return std::nullopt;
  if (r.op == ReduceOp::Sum || r.op == ReduceOp::AbsSum) return Join{ReduceOp::Sum, false};
  const ReduceOp op = r.op == ReduceOp::AbsMax ? ReduceOp::Max : r.op;
  return Join{op, r.nan_propagate && type.is_float()};
}

// Whether a part that is joined twice counts once.
bool is_idempotent(const Join& by) { return by.op != ReduceOp::Sum && by.op != ReduceOp::BitXor; }

// Whether a value is infinite only where it is too large for its type: of others a lane whose part is 0 would make NaN,
// where the whole sum is infinite.
class Finite {
 public:
  Finite(const ProgramTables& p, const Body& body) : p_(p) {
    walk(body, [&](const Stmt& s) {
      if (const auto* n = s.as<Let>()) names_[n->var] = n->value;
      const Expr* value = nullptr;
      if (const auto* n = s.as<Store>()) value = &n->value;
      if (const auto* n = s.as<Fill>()) value = &n->value;
      for (const Effect& e : own_effects_of(s).list) {
        if (e.access == Access::Read || e.access == Access::Order || !e.region.valid()) continue;
        const BufferId id = p.root(e.region.buffer);
        if (value && id == e.region.buffer)
          written_[id].push_back(*value);
        else
          otherwise_.insert(id);
      }
    });
  }
  bool operator()(const Expr& e) {
    seen_.clear(), named_.clear();
    return of(e);
  }

 private:
  // All that a value is made of has to be.
  bool of(const Expr& e) {
    if (const auto value = constant_float(e)) return std::isfinite(*value);
    if (e->type.is_int() || e->type.is_bool()) return true;
    if (const auto* n = e.as<Var>()) {
      const auto named = names_.find(n->id);
      if (named == names_.end()) return false;
      if (const auto known = named_.find(n->id); known != named_.end()) return known->second;
      return named_[n->id] = of(named->second);
    }
    if (const auto* n = e.as<Load>()) return is_tile(n->buffer);
    if (const auto* n = e.as<Cast>()) return of(n->value);
    if (const auto* n = e.as<Unary>()) return of(n->a);
    if (const auto* n = e.as<Fma>()) return of(n->a) && of(n->b) && of(n->c);
    if (const auto* n = e.as<Select>()) return of(n->a) && of(n->b);
    if (const auto* n = e.as<Binary>()) return n->op != BinaryOp::Div && of(n->a) && of(n->b);
    const auto* n = e.as<Intrinsic>();
    return n && std::ranges::find(kBounded, n->function) != std::end(kBounded);
  }

  // Exponentials are infinite for arguments above 88 alone; the language says that rows which they rescale then are
  // NaN.
  static constexpr Function kBounded[] = {Function::Exp,       Function::Exp2,    Function::Exp10,   Function::FastExp,
                                          Function::FastExp10, Function::Sigmoid, Function::Tanh,    Function::Erf,
                                          Function::Sin,       Function::Cos,     Function::FastSin, Function::FastCos};
  bool is_tile(BufferId id) {
    if (p_.root(id) != id || p_.buffer(id).space == Space::Global || otherwise_.contains(id)) return false;
    return !seen_.insert(id).second || std::ranges::all_of(written_[id], [&](const Expr& e) { return of(e); });
  }

  const ProgramTables& p_;
  std::map<VarId, Expr> names_;
  std::map<BufferId, std::vector<Expr>> written_;
  std::set<BufferId> otherwise_;
  std::set<BufferId> seen_;      // tiles whose values are among those that are looked at
  std::map<VarId, bool> named_;  // what is known of names: each is looked at once, however often others use it
};

class LateSums {
 public:
  LateSums(const TileProgram& p, const Body& in, Placement& placement) : p_(p), placement_(placement), finite_(p, in) {}

  Body run(const Body& in) {
    walk(in, [&](const Stmt& s) {
      const auto* r = s.as<Reduce>();
      if (r && joining_of(*r) && lies_in_lanes(*r)) parts_[r->to.buffer].push_back(r);
    });
    walk(in, [&](const Stmt& s) { recurrence(s); });
    for (const auto& [to, reduces] : parts_)
      if (std::ranges::none_of(reduces, &Reduce::clear)) sums_[to];  // what is joined is the result itself
    Body out = in;
    for (const auto& [sum, parts] : sums_) out = late(out, sum, parts);
    return out;
  }

 private:
  using Buffers = std::set<BufferId>;

  // Whether every thread has some columns of each row that it has: lanes of a warp, and warps where copies of the sum
  // are theirs.
  bool lies_in_lanes(const Reduce& r) const {
    const FragmentLayout *from = placement_.layout_of(r.from.buffer), *to = placement_.layout_of(r.to.buffer);
    const Buffer& b = p_.buffer(r.to.buffer);
    if (!from || !to || !is_whole(r.to, b)) return false;
    if (!from->is_warp_aligned() || !from->uses_all_threads() || !to->is_warp_aligned() || !to->uses_all_threads())
      return false;
    std::set<std::tuple<Home, int64_t, int64_t>> parts, copies;  // extents and strides
    for (const Digit& d : from->digits()) {
      if (d.dim < 0) return false;
      if (d.dim != r.dim || d.home == Home::Register) continue;
      const bool shuffles =
          std::has_single_bit(static_cast<uint64_t>(d.extent)) && std::has_single_bit(static_cast<uint64_t>(d.stride));
      if (d.home == Home::Cta || (d.home == Home::Lane && !shuffles)) return false;
      parts.emplace(d.home, d.extent, d.stride);
    }
    for (const Digit& d : to->digits())
      if (d.dim < 0) copies.emplace(d.home, d.extent, d.stride);
    return !parts.empty() && parts == copies;
  }
  std::optional<Join> joining_of(const Reduce& r) const { return joining(r, p_.buffer(r.to.buffer).type); }
  // sum[i] = sum[i] * x + part[i], or most[i] = max(most[i], part[i]), of parts that only such a Map reads.
  void recurrence(const Stmt& s) {
    const auto* map = s.as<Map>();
    const auto* store = map && map->body.size() == 1 ? map->body[0].as<Store>() : nullptr;
    if (!store || !placement_.layout_of(store->to.buffer)) return;
    Buffers parts;
    walk(store->value, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      if (n && n->buffer != store->to.buffer && parts_.contains(n->buffer)) parts.insert(n->buffer);
    });
    const bool alike = std::all_of(parts.begin(), parts.end(), [&](BufferId id) {
      return *placement_.layout_of(id) == *placement_.layout_of(store->to.buffer);
    });
    if (!parts.empty() && alike) sums_[store->to.buffer].merge(parts);
  }

  // ---- uses
  static bool is_element(const Expr& e, const Map& map, BufferId id) {
    const auto* n = e.as<Load>();
    if (!n || n->buffer != id || n->indices.size() != map.vars.size()) return false;
    for (size_t d = 0; d < map.vars.size(); ++d)
      if (const auto* v = n->indices[d].as<Var>(); !v || v->id != map.vars[d]) return false;
    return true;
  }
  static bool mentions(const Expr& e, const Buffers& ids) {
    bool found = false;
    walk(e, [&](const Expr& x) { found = found || (x.as<Load>() && ids.contains(x.as<Load>()->buffer)); });
    return found;
  }
  // Whether the value of the results is what joins the values of their parts.
  bool is_joined(const Expr& e, const Map& map, const Buffers& ids, const Join& by) const {
    if (by.op == ReduceOp::Sum) return is_linear(e, map, ids);
    if (const auto* n = e.as<Load>()) return ids.contains(n->buffer) && is_element(e, map, n->buffer);
    if (!mentions(e, ids)) return is_idempotent(by);
    const auto* n = e.as<Binary>();
    const Expr both = n ? combine(by.op, n->a, n->b, by.nan_propagate) : Expr{};
    return both && equal(both, e) && is_joined(n->a, map, ids, by) && is_joined(n->b, map, ids, by);
  }
  bool is_linear(const Expr& e, const Map& map, const Buffers& ids) const {
    auto linear = [&](const Expr& x) { return is_linear(x, map, ids); };
    auto free = [&](const Expr& x) { return !mentions(x, ids) && finite_(x); };
    if (const auto* n = e.as<Load>()) return ids.contains(n->buffer) && is_element(e, map, n->buffer);
    if (const auto* n = e.as<Fma>())
      return linear(n->c) && ((linear(n->a) && free(n->b)) || (linear(n->b) && free(n->a)));
    if (const auto* n = e.as<Unary>()) return n->op == UnaryOp::Neg && linear(n->a);
    const auto* n = e.as<Binary>();
    if (!n) return false;
    if (n->op == BinaryOp::Add || n->op == BinaryOp::Sub) return linear(n->a) && linear(n->b);
    return n->op == BinaryOp::Mul && ((linear(n->a) && free(n->b)) || (linear(n->b) && free(n->a)));
  }
  Use use_of(const Stmt& s, const Buffers& ids, const Buffers& parts, const Join& by) const {
    const Buffers used = used_buffers({s});
    if (std::none_of(ids.begin(), ids.end(), [&](BufferId id) { return used.contains(id); })) return Use::None;
    if (const auto* r = s.as<Reduce>())
      return ids.contains(r->to.buffer) && !ids.contains(r->from.buffer) && joining_of(*r) == by && lies_in_lanes(*r)
                 ? (r->clear && !parts.contains(r->to.buffer) ? Use::Reads : Use::Adds)
                 : Use::Reads;
    const auto* map = s.as<Map>();
    const auto* store = map && map->body.size() == 1 ? map->body[0].as<Store>() : nullptr;
    if (!store || !ids.contains(store->to.buffer)) return Use::Reads;
    if (!is_element(load(store->to.buffer, store->to.indices, store->value->type), *map, store->to.buffer))
      return Use::Reads;
    for (size_t d = 0; d < map->extents.size(); ++d)
      if (constant_int(map->extents[d]) != constant_int(p_.buffer(store->to.buffer).shape[d])) return Use::Reads;
    const bool starts = is_idempotent(by) ? !mentions(store->value, ids)
                                          : constant_float(store->value) == 0.0 || constant_int(store->value) == 0;
    if (!parts.contains(store->to.buffer) && starts) return Use::Starts;
    return is_joined(store->value, *map, ids, by) ? Use::Adds : Use::Reads;
  }

  // ---- where the lanes meet
  Body late(const Body& in, BufferId sum, const Buffers& parts) {
    Buffers ids = parts;
    ids.insert(sum);
    for (BufferId id : ids)
      for (const Buffer& b : p_.buffers)
        if (b.is_view() && b.root == p_.root(id)) return in;
    for (BufferId part : parts)
      if (!parts_.at(part).front()->clear) return in;
    const Join by = *joining_of(*parts_.at(parts.empty() ? sum : *parts.begin()).front());
    bool found = false;
    Body out = in;
    if (!place(out, ids, parts, sum, by, found) || !found) return in;
    for (BufferId id : ids) placement_.partial.emplace(id, by);
    return out;
  }
  // How many statements of the bodies, in loops or not, use any of them.
  static int uses(const Body& in, const Buffers& ids) {
    int out = 0;
    for (const Stmt& s : in) {
      const Buffers used = used_buffers({s});
      out += std::any_of(ids.begin(), ids.end(), [&](BufferId id) { return used.contains(id); });
    }
    return out;
  }
  // The body in which all of it happens: it starts, is added to in loops, and then is read.
  bool place(Body& in, const Buffers& ids, const Buffers& parts, BufferId sum, const Join& by, bool& found) {
    if (uses(in, ids) == 1) {
      for (Stmt& s : in) {
        if (uses({s}, ids) == 0) continue;
        if (const auto* n = s.as<For>()) {
          For f = *n;
          if (!place(f.body, ids, parts, sum, by, found)) return false;
          s = make_stmt(std::move(f), s->location);
          return true;
        }
        if (const auto* n = s.as<Role>()) {
          Role r = *n;
          if (!place(r.body, ids, parts, sum, by, found)) return false;
          s = make_stmt(std::move(r), s->location);
          return true;
        }
        return false;
      }
    }
    bool starts = false, loops = false;
    for (size_t i = 0; i < in.size(); ++i) {
      const Use use = whole_use(in[i], ids, parts, by, true);
      if (use == Use::None) continue;
      if (use == Use::Starts && !starts) {
        starts = true;
        continue;
      }
      if (!starts) return false;
      if (use == Use::Adds) {
        loops = loops || in[i].as<For>() || in[i].as<If>();
        continue;
      }
      // From here on it is whole: what every copy of an element computes of it may take its place.
      for (size_t j = i; j < in.size(); ++j) {
        if (reduces_into(in[j], ids)) return false;
        for (BufferId part : parts)
          if (used_buffers({in[j]}).contains(part)) return false;
      }
      in.insert(in.begin() + static_cast<std::ptrdiff_t>(i), make_stmt(FinalizeReducer{sum}, in[i]->location));
      return found = loops;
    }
    return false;
  }
  static bool reduces_into(const Stmt& s, const Buffers& ids) {
    bool out = false;
    walk({s}, [&](const Stmt& x) {
      const auto* r = x.as<Reduce>();
      out = out || (r && ids.contains(r->to.buffer));
    });
    return out;
  }
  // Of a statement with all that is in it.
  Use whole_use(const Stmt& s, const Buffers& ids, const Buffers& parts, const Join& by, bool outermost) const {
    std::vector<const Body*> inner;
    for_each_body(s, [&](const Body& b) { inner.push_back(&b); });
    if (s.as<Map>() || inner.empty()) return use_of(s, ids, parts, by);
    bool direct = false;
    for_each_expr(s, [&](const Expr& e) { direct = direct || mentions(e, ids); });
    if (direct || s.as<Role>() || s.as<While>()) return uses({s}, ids) ? Use::Reads : Use::None;
    Use out = Use::None;
    for (const Body* b : inner)
      for (const Stmt& x : *b) {
        const Use use = whole_use(x, ids, parts, by, false);
        if (use == Use::Reads || (use == Use::Starts && outermost)) return Use::Reads;
        if (use != Use::None) out = use;
      }
    return out == Use::Starts ? Use::Reads : out;
  }

  const TileProgram& p_;
  Placement& placement_;
  mutable Finite finite_;
  std::map<BufferId, std::vector<const Reduce*>> parts_;
  std::map<BufferId, Buffers> sums_;
};

}  // namespace

Body late_sums(const TileProgram& program, const Launch& launch, Placement& placement) {
  return LateSums(program, launch.body, placement).run(launch.body);
}

}  // namespace tilewright::passes
