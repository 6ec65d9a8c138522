#include "passes/threads/lane_conditions.h"

#include "analysis/divisibility.h"
#include "analysis/slope.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/widen.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class LaneConditions {
 public:
  LaneConditions(const VectorLanes& lanes, const ProgramTables& p, std::vector<Expr>* needs)
      : lanes_(lanes), p_(p), needs_(needs) {}

  Body body(const Body& in) {
    const auto* n = in.size() == 1 ? in[0].as<If>() : nullptr;
    if (!n || !n->else_body.empty()) return in;
    If common = *n;
    common.condition = of_first_lane(n->condition);
    common.then_body = body(n->then_body);
    return {make_stmt(std::move(common), in[0]->location)};
  }

 private:
  bool has_lane(const Expr& e) const { return used_vars(e).contains(lanes_.var); }
  Expr first(const Expr& e) const { return substitute(e, {{lanes_.var, constant(0)}}); }

  Expr of_first_lane(const Expr& condition) {
    const auto* n = has_lane(condition) ? condition.as<Binary>() : nullptr;
    if (!n) return condition;
    const bool joins = n->op == BinaryOp::And || n->op == BinaryOp::Or;
    if (joins || (condition->type.is_bool() && (n->op == BinaryOp::BitAnd || n->op == BinaryOp::BitOr)))
      return binary(n->op, of_first_lane(n->a), of_first_lane(n->b));
    if ((n->op != BinaryOp::Lt && n->op != BinaryOp::Le) || !n->a->type.is_int()) return condition;
    // Lanes count up from a multiple of their number: beginnings below what is one, or one's own from it on.
    const auto is_row = [&](const Expr& e) {
      return analysis::slope_through_casts(e, lanes_.var) == 1 && is_divided(first(e));
    };
    const auto follows = [&](const Expr& e) { return add(e, constant(e->type, int64_t{1})); };
    const bool less = n->op == BinaryOp::Lt;
    if (is_row(n->a) && is_bound(less ? n->b : follows(n->b))) return binary(n->op, first(n->a), n->b);
    if (is_row(n->b) && is_bound(less ? follows(n->a) : n->a)) return binary(n->op, n->a, first(n->b));
    return condition;
  }
  bool is_divided(const Expr& e) const { return analysis::power_of_two_divisor(widen(e), p_) % lanes_.count == 0; }
  // Whether the lanes divide a value that is the same for all of them, or the call tells.
  bool is_bound(const Expr& e) {
    if (has_lane(e)) return false;
    if (is_divided(e)) return true;
    const std::set<VarId> used = used_vars(e);
    const bool of_call =
        std::ranges::all_of(used, [&](VarId v) { return std::ranges::find(p_.symbols, v) != p_.symbols.end(); });
    if (!needs_ || used.empty() || !of_call) return false;
    needs_->push_back(binary(BinaryOp::Eq, binary(BinaryOp::FloorMod, widen(e), constant(i64, lanes_.count)),
                             constant(i64, int64_t{0})));
    return true;
  }

  const VectorLanes lanes_;
  const ProgramTables& p_;
  std::vector<Expr>* const needs_;
};

}  // namespace

Body under_common_conditions(const Body& body, const VectorLanes& lanes, const ProgramTables& program,
                             std::vector<Expr>* needs) {
  return LaneConditions(lanes, program, needs).body(body);
}

const If* condition_of_all(const Body& body, VarId lane) {
  const auto* n = body.size() == 1 ? body[0].as<If>() : nullptr;
  if (!n || !n->else_body.empty() || used_vars(n->condition).contains(lane)) return nullptr;
  bool loads = false;
  walk(n->condition, [&](const Expr& e) { loads = loads || e.as<Load>(); });
  return loads ? nullptr : n;
}

const Body& under_conditions(const Body& body, VarId lane) {
  const If* n = condition_of_all(body, lane);
  return n ? under_conditions(n->then_body, lane) : body;
}

}  // namespace tilewright::passes
