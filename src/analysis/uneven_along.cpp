#include "analysis/uneven_along.h"

#include <map>

#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// Whether an expression falls (-1), stays (0) or rises (1) with a variable; none: neither is known.
using Direction = std::optional<int>;

Direction together(const Direction& a, const Direction& b) {
  if (!a || !b || *a * *b < 0) return std::nullopt;
  return *a != 0 ? a : b;
}

class Directions {
 public:
  Directions(const Body& body, VarId of) : of_(of) {
    walk(body, [&](const Stmt& s) {
      if (const auto* let = s.as<Let>()) named_[let->var] = let->value;
    });
    bound_ = bound_vars(body);
  }

  Direction of(const Expr& e) {
    if (const auto* n = e.as<Var>()) return of_variable(n->id);
    if (const auto* n = e.as<Cast>()) return n->value->type.is_int() && e->type.is_int() ? of(n->value) : steady(e);
    if (const auto* n = e.as<Sum>()) {
      Direction out = 0;
      for (const Term& t : n->terms) {
        const Direction d = of(t.value);
        out = together(out, d ? Direction(t.coefficient < 0 ? -*d : *d) : d);
      }
      return out;
    }
    if (const auto* n = e.as<Binary>()) {
      if (n->op == BinaryOp::Min || n->op == BinaryOp::Max) return together(of(n->a), of(n->b));
      const auto by = constant_int(n->b);
      if (n->op == BinaryOp::FloorDiv && by && *by > 0) return of(n->a);
    }
    return steady(e);
  }

 private:
  Direction of_variable(VarId v) {
    if (v == of_) return 1;
    const auto named = named_.find(v);
    if (named == named_.end()) return bound_.contains(v) ? Direction() : Direction(0);
    const auto [known, is_new] = known_.try_emplace(v);
    if (is_new) known->second = of(named->second);
    return known_.at(v);
  }
  // 0 where no variable in it changes with the tile.
  Direction steady(const Expr& e) {
    for (VarId v : used_vars(e))
      if (of_variable(v) != Direction(0)) return std::nullopt;
    return 0;
  }
  const VarId of_;
  std::map<VarId, Expr> named_;
  std::set<VarId> bound_;  // what else the body binds: variables of loops
  std::map<VarId, Direction> known_;
};

}  // namespace

std::optional<size_t> uneven_along(const Launch& launch) {
  std::optional<size_t> found;
  for (size_t d = 0; d < launch.block.size(); ++d) {
    Directions directions(launch.body, launch.block[d]);
    Direction turns = 0;
    walk(launch.body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      if (loop && loop->kind == LoopKind::Pipelined) turns = together(turns, directions.of(loop->extent));
    });
    if (!turns || *turns == 0) continue;
    if (found) return std::nullopt;
    found = d;
  }
  return found;
}

}  // namespace tilewright::analysis
