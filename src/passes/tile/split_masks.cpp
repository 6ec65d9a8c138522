#include "passes/tile/split_masks.h"

#include "analysis/slope.h"
#include "ir/extent.h"
#include "ir/names.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/zero.h"
#include "passes/lower/intervals.h"
#include "passes/tile/accumulator_room.h"

namespace tilewright::passes {

using namespace ir;
using analysis::slope;

namespace {

// Registers of a thread that are not accumulators of products: of three warpgroups with 160 a thread, 104 accumulators
// and a branch with a mask fit, and of 112 some spill.
constexpr int64_t kOtherRegisters = 56;

// Whether accumulators leave few registers: what one holds before a branch that fills it is alive beside the others
// then, and spills them. A mask in every turn is less.
bool is_short_of_registers(const ProgramTables& p, const Launch& launch, const target::GpuTarget& target) {
  return accumulator_registers(p, launch) > most_registers(launch, target) - kOtherRegisters;
}

class Masks {
 public:
  Masks(TileProgram& p, const Launch& launch) : p_(p), ranges_(ranges_in(launch, ranges_of_symbols(p))) {}

  Body body(const Body& in) {
    Body out;
    for (size_t i = 0; i < in.size(); ++i) {
      const Stmt& s = in[i];
      if (const auto* loop = s.as<For>()) {
        For f = *loop;
        f.body = body(f.body);
        out.push_back(make_stmt(std::move(f), s->location));
        continue;
      }
      if (const auto* n = s.as<If>()) {
        out.push_back(make_stmt(If{n->condition, body(n->then_body), body(n->else_body)}, s->location));
        continue;
      }
      const Expr all = i + 1 < in.size() ? needless(s, in[i + 1]) : Expr{};
      if (!all || constant_int(all) == 0) {
        out.push_back(s);
        continue;
      }
      Expr unmasked = all;
      if (!constant_int(all)) {
        const VarId whole = p_.new_var("unmasked", boolean);
        unmasked = var(whole, boolean);
        out.push_back(make_stmt(Let{whole, all}, s->location));
        out.push_back(make_stmt(If{logical_not(unmasked), {s}, {}}, s->location));
      }
      Gemm g = *in[++i].as<Gemm>();
      g.clear = unmasked;
      out.push_back(make_stmt(std::move(g), in[i]->location));
    }
    return out;
  }

 private:
  // When the Map leaves zeros alone, as an expression without its variables; none: it is no such Map.
  Expr needless(const Stmt& s, const Stmt& next) const {
    const auto* map = s.as<Map>();
    const auto* gemm = next.as<Gemm>();
    if (!map || !gemm || gemm->clear || map->body.empty()) return {};
    const auto* store = map->body.back().as<Store>();
    if (!store || store->to.buffer != gemm->c.buffer) return {};
    const Buffer& tile = p_.buffer(store->to.buffer);
    if (tile.space != Space::Fragment || tile.is_view() || !is_whole(gemm->c, tile)) return {};
    if (map->vars.size() != tile.rank()) return {};
    for (size_t d = 0; d < tile.rank(); ++d) {
      const auto* v = store->to.indices[d].as<Var>();
      if (!v || v->id != map->vars[d] || constant_int(map->extents[d]) != constant_int(tile.shape[d])) return {};
    }
    Substitution lets;
    for (size_t i = 0; i + 1 < map->body.size(); ++i) {
      const auto* let = map->body[i].as<Let>();
      const auto whole = let ? spelled_out(let->value, lets) : std::nullopt;
      if (!whole) return {};
      lets[let->var] = *whole;
    }
    const auto value = spelled_out(store->value, lets);
    if (!value) return {};
    if (is_zero(*value)) return constant(boolean, int64_t{1});
    const auto* select = value->as<Select>();
    if (!select) return {};
    if (is_zero(select->a)) return everywhere(select->condition, *map);
    return is_zero(select->b) ? everywhere(opposite(select->condition), *map) : Expr{};
  }
  // The negation of comparisons of integers, as comparisons; what is none of those stays as it is, under a Not.
  static Expr opposite(const Expr& e) {
    const auto* b = e.as<Binary>();
    if (b && b->op == BinaryOp::Or) return logical_and(opposite(b->a), opposite(b->b));
    if (b && b->op == BinaryOp::Lt && b->a->type.is_int()) return binary(BinaryOp::Le, b->b, b->a);
    if (b && b->op == BinaryOp::Le && b->a->type.is_int()) return binary(BinaryOp::Lt, b->b, b->a);
    return logical_not(e);
  }
  // The condition at the points where it is hardest to meet.
  Expr everywhere(const Expr& condition, const Map& map) const {
    const auto* b = condition.as<Binary>();
    if (!b) return {};
    if (b->op == BinaryOp::And) {
      const Expr x = everywhere(b->a, map), y = everywhere(b->b, map);
      return x && y ? logical_and(x, y) : Expr{};
    }
    if (b->op != BinaryOp::Lt && b->op != BinaryOp::Le) return {};
    if (const auto* least = b->b.as<Binary>(); least && least->op == BinaryOp::Min) {  // below both
      const Expr x = everywhere(binary(b->op, b->a, least->a), map), y = everywhere(binary(b->op, b->a, least->b), map);
      return x && y ? logical_and(x, y) : Expr{};
    }
    Substitution hardest;
    Ends left_ends, right_ends;
    for (size_t d = 0; d < map.vars.size(); ++d) {
      const auto left = slope(b->a, map.vars[d]), right = slope(b->b, map.vars[d]);
      const auto extent = constant_int(map.extents[d]);
      if (!left || !right || !extent) return {};
      const DType type = p_.var(map.vars[d]).type;
      const Expr first = constant(type, int64_t{0}), last = constant(type, *extent - 1);
      hardest[map.vars[d]] = *left > *right ? last : first;
      left_ends.add(map.vars[d], *left, first, last), right_ends.add(map.vars[d], *right, first, last);
    }
    Expr out = substitute(condition, hardest);
    for (const Expr& more : {stays_in_type(b->a, left_ends), stays_in_type(b->b, right_ends)}) {
      if (!more) return {};
      if (constant_int(more) != 1) out = logical_and(out, more);
    }
    bool loads = false;
    walk(out, [&](const Expr& e) { loads = loads || e.as<Load>(); });
    return loads ? Expr{} : out;
  }
  // The points at which an expression is least and most.
  struct Ends {
    Substitution least, most;
    void add(VarId v, int64_t slope, const Expr& first, const Expr& last) {
      least[v] = slope < 0 ? last : first, most[v] = slope < 0 ? first : last;
    }
  };
  // Whether no point of the map wraps around: of one that does, the hardest point tells nothing. None: nobody knows.
  Expr stays_in_type(const Expr& e, const Ends& ends) const {
    const Expr yes = constant(boolean, int64_t{1});
    if (!e->type.is_int()) return {};
    if (!e.as<ir::Sum>()) return yes;
    const Interval type = e->type == i32 ? range_of_type(i32) : Interval{-kUnbounded + 1, kUnbounded - 1};
    const Interval all = ranges_.of(widen(e));
    if (e->type.is_signed() && type.low <= all.low && all.high <= type.high) return yes;
    if (e->type != i32) return {};
    const Expr least = widen(substitute(e, ends.least)), most = widen(substitute(e, ends.most));
    return logical_and(binary(BinaryOp::Le, constant(i64, type.low), least),
                       binary(BinaryOp::Le, most, constant(i64, type.high)));
  }

  TileProgram& p_;
  const Intervals ranges_;
};

}  // namespace

void split_masks(TileProgram& program, const target::GpuTarget& target) {
  for (Launch& launch : program.launches)
    if (!is_short_of_registers(program, launch, target)) launch.body = Masks(program, launch).body(launch.body);
}

}  // namespace tilewright::passes
