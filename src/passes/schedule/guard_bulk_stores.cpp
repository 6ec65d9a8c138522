#include "passes/schedule/guard_bulk_stores.h"

#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/widen.h"
#include "passes/lower/intervals.h"
#include "passes/schedule/role_code.h"
#include "passes/threads/elementwise.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Guards {
 public:
  Guards(ProgramTables& p, const Launch& launch, const std::vector<VarId>& natural)
      : p_(p), natural_(natural.begin(), natural.end()) {
    for (size_t d = 0; d < launch.thread.size(); ++d) known_.set(launch.thread[d], {0, launch.threads[d] - 1});
    natural_.insert(launch.block.begin(), launch.block.end());
    for (VarId v : natural_) known_.set(v, {0, range_of_type(p.var(v).type).high});
    for (size_t d = 0; d < launch.grid.size(); ++d)
      known_.set(launch.block[d], counted({0, 0}, known_.of(launch.grid[d]), i32));
  }

  Body body(const Body& in) {
    Body out;
    Intervals::Ranges assumed;
    for (const Stmt& s : in) {
      if (const auto* n = s.as<Assume>())
        for (const auto& before : known_.narrow(n->condition)) assumed.push_back(before);
      note(s);
      append(out, statement(s));
    }
    known_.restore(assumed);
    return out;
  }

 private:
  // Of begin, begin + 1, ..., begin + extent - 1: no turn has a number that its type has not.
  static Interval counted(Interval begin, Interval extent, DType type) {
    const Interval all = range_of_type(type);
    const int64_t low = std::max(all.low, begin.low);
    return {low, std::clamp(begin.high + extent.high - 1, low, all.high)};
  }
  void note(const Stmt& s) {
    if (const auto* n = s.as<Let>(); n && n->value->type.is_int() && !natural_.contains(n->var))
      known_.set(n->var, known_.of(n->value));
    if (const auto* n = s.as<For>()) {
      known_.set(n->var, counted(known_.of(n->begin), known_.of(n->extent), p_.var(n->var).type));
    }
  }
  Body statement(const Stmt& s) {
    if (const auto* n = s.as<For>()) {
      For f = *n;
      f.body = body(n->body);
      return {make_stmt(std::move(f), s->location)};
    }
    if (const auto* n = s.as<While>()) {
      While w = *n;
      w.body = body(n->body);
      return {make_stmt(std::move(w), s->location)};
    }
    if (const auto* n = s.as<Role>()) {
      Role r = *n;
      r.body = body(n->body);
      return {make_stmt(std::move(r), s->location)};
    }
    if (const auto* n = s.as<If>()) {
      const Intervals::Ranges before = known_.narrow(n->condition);
      Body taken = body(n->then_body);
      known_.restore(before);
      return {make_stmt(If{n->condition, std::move(taken), body(n->else_body)}, s->location)};
    }
    const auto* copy = s.as<Copy>();
    if (!copy || copy->completion.queue != Queue::BulkStore) return {s};
    const Expr inside = begins_inside(copy->to);
    if (!inside) return {s};
    Copy slow = *copy;
    slow.completion = {};
    return {make_stmt(If{inside, {s}, copies_to_maps({make_stmt(std::move(slow), s->location)}, p_)}, s->location)};
  }
  // That no begin is negative, of those that are not known to be so; none: all are.
  Expr begins_inside(const Region& to) const {
    Expr all;
    for (const Expr& e : to.min) {
      const Expr begin = widen(e);
      if (known_.of(begin).low >= 0) continue;
      const Expr inside = binary(BinaryOp::Le, constant(begin->type, int64_t{0}), begin);
      all = all ? logical_and(all, inside) : inside;
    }
    return all;
  }

  ProgramTables& p_;
  std::set<VarId> natural_;
  Intervals known_;
};

}  // namespace

Body guard_bulk_stores(ProgramTables& tables, const Launch& launch, const std::vector<VarId>& natural) {
  return Guards(tables, launch, natural).body(launch.body);
}

}  // namespace tilewright::passes
