#include "passes/threads/shared_loads.h"

#include "analysis/anywhere.h"
#include "analysis/divisibility.h"
#include "ir/buffer_vars.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// x = whole + rest where d divides `whole`, which is the same in all lanes, and rest is in [0, d).
struct Parts {
  Expr whole, rest;
};
std::optional<Parts> parted(const Expr& x, int64_t d, VarId lane, const Lowering& l) {
  const auto* s = x.as<Sum>();
  if (!s || !used_vars(x).contains(lane)) return std::nullopt;
  std::vector<Term> whole, rest;
  for (const Term& t : s->terms) {
    const bool divided = analysis::power_of_two_divisor(sum({t}, 0, x->type), l.program) % d == 0;
    (divided && !used_vars(t.value).contains(lane) ? whole : rest).push_back(t);
  }
  const int64_t below = s->constant & (d - 1);
  Parts out{sum(std::move(whole), s->constant - below, x->type), sum(std::move(rest), below, x->type)};
  const Interval range = l.intervals.of(out.rest);
  if (range.low < 0 || range.high >= d) return std::nullopt;
  return out;
}

// The same of any rest that nothing but the lane is in, where the sum does not wrap.
std::optional<Parts> lanes_apart(const Expr& x, int64_t d, VarId lane, const Lowering& l) {
  const auto* s = x.as<Sum>();
  const Interval all = l.intervals.of(x), type = range_of_type(x->type);
  if (!s || s->terms.size() < 2 || s->constant != 0 || all.low < 0 || all.high >= type.high) return std::nullopt;
  std::vector<Term> whole, rest;
  for (const Term& t : s->terms) {
    const std::set<VarId> used = used_vars(t.value);
    const bool of_lane = used.contains(lane);
    if (of_lane && t.coefficient < 0 && !x->type.is_signed()) return std::nullopt;  // the rest alone wraps around
    if (of_lane ? used.size() > 1 : analysis::power_of_two_divisor(sum({t}, 0, x->type), l.program) % d != 0)
      return std::nullopt;
    (of_lane ? rest : whole).push_back(t);
  }
  if (rest.empty()) return std::nullopt;
  return Parts{sum(std::move(whole), 0, x->type), sum(std::move(rest), 0, x->type)};
}

bool reads(const Expr& e, function_ref<bool(const Load&)> what) {
  bool found = false;
  walk(e, [&](const Expr& x) {
    const auto* n = x.as<Load>();
    found = found || (n && what(*n));
  });
  return found;
}

class Naming {
 public:
  Naming(Body body, VarId lane, Lowering& l, function_ref<analysis::BodyOrder(const Body&)> order_of,
         function_ref<bool(BufferId)> is_memory, function_ref<bool(const Load&)> may_load)
      : lane_(lane), l_(l), order_of_(order_of), is_memory_(is_memory), may_load_(may_load) {
    out_.body = std::move(body);
  }
  SharedLoads all() {
    while (name_one()) {
    }
    return std::move(out_);
  }

 private:
  bool name_one() {
    const analysis::BodyOrder order = order_of_(out_.body);
    const std::set<VarId> bound = bound_vars(out_.body);
    for (size_t i = 0; i < out_.body.size(); ++i) {
      Expr found;
      walk_exprs({out_.body[i]}, [&](const Expr& e) {
        const auto* n = found ? nullptr : e.as<Load>();
        if (!n) return;
        if (is_memory_(n->buffer) && is_shared(e, bound) && is_first(i, e, order)) found = e;
        for (const Expr& index : n->indices)
          if (is_memory_(n->buffer) && !found) found = looked_up(index, i, bound, order);
      });
      if (const auto* s = out_.body[i].as<Store>(); s && !found && is_memory_(s->to.buffer))
        for (const Expr& index : s->to.indices)
          if (!found) found = looked_up(index, i, bound, order);
      // An index may be read through a name.
      if (const auto* let = out_.body[i].as<Let>(); let && !found && let->value->type.is_int())
        found = looked_up(let->value, i, bound, order);
      if (!found) continue;
      name(found, order);
      return true;
    }
    return false;
  }
  // Of an index, what it reads from registers.
  Expr looked_up(const Expr& index, size_t top, const std::set<VarId>& bound, const analysis::BodyOrder& order) const {
    Expr found;
    walk(index, [&](const Expr& e) {
      const auto* n = found ? nullptr : e.as<Load>();
      if (n && !is_memory_(n->buffer) && is_shared(e, bound) && order.reads_what_was(top, e) &&
          (order.surely_reads(top, e) || analysis::may_look_anywhere(n->indices)))
        found = e;
    });
    return found;
  }
  // The same for all lanes, and known before the body.
  bool is_shared(const Expr& e, const std::set<VarId>& bound) const {
    for (const VarId v : used_vars(e))
      if (v == lane_ || bound.contains(v)) return false;
    if (stands_by(l_.program, e.as<Load>()->buffer, bound)) return false;
    for (const Expr& index : e.as<Load>()->indices)
      if (reads(index, [](const Load&) { return true; })) return false;  // those are named first
    return true;
  }
  bool is_first(size_t top, const Expr& e, const analysis::BodyOrder& order) const {
    return order.reads_what_was(top, e) && (order.surely_reads(top, e) || may_load_(*e.as<Load>()));
  }
  void name(const Expr& found, const analysis::BodyOrder& order) {
    const BufferId buffer = found.as<Load>()->buffer;
    const VarId v = l_.program.new_var(l_.buffer(buffer).name + "_here", found->type);
    if (found->type.is_integral()) l_.intervals.set(v, l_.intervals.of(found));
    out_.names.push_back(l_.make(Let{v, guard_accesses(found, l_)}));
    out_.roots.push_back(l_.program.root(buffer));
    Body body;
    for (size_t i = 0; i < out_.body.size(); ++i) {
      const bool same = order.reads_what_was(i, found);
      const Body one = same
                           ? rewrite_exprs({out_.body[i]},
                                           [&](const Expr& e) -> std::optional<Expr> {
                                             return equal(e, found) ? std::optional(var(v, found->type)) : std::nullopt;
                                           })
                           : Body{out_.body[i]};
      body.insert(body.end(), one.begin(), one.end());
    }
    out_.body = std::move(body);
  }

  const VarId lane_;
  Lowering& l_;
  const function_ref<analysis::BodyOrder(const Body&)> order_of_;
  const function_ref<bool(BufferId)> is_memory_;
  const function_ref<bool(const Load&)> may_load_;
  SharedLoads out_;
};

}  // namespace

Body without_lanes_in_quotients(const Body& body, VarId lane, Lowering& l) {
  return rewrite_exprs(body, [&](const Expr& e) -> std::optional<Expr> {
    const auto* n = e.as<Binary>();
    if (!n || (n->op != BinaryOp::FloorDiv && n->op != BinaryOp::FloorMod)) return std::nullopt;
    const int64_t d = constant_int(n->b).value_or(0);
    if (d < 2) return std::nullopt;
    const int64_t power = d & -d;  // the largest of two in d
    const bool is_below = power == d && parted(n->a, d, lane, l);
    if (const auto apart = power == d && !is_below ? lanes_apart(n->a, d, lane, l) : std::nullopt) {
      const Expr of_lanes = binary(n->op, apart->rest, n->b);
      return n->op == BinaryOp::FloorMod ? of_lanes : add(binary(BinaryOp::FloorDiv, apart->whole, n->b), of_lanes);
    }
    // What is below a divisor of d adds nothing to the quotient of a multiple of that, and all of itself to the rest.
    for (int64_t part = power; part > 1; part /= 2) {
      const auto parts = parted(n->a, part, lane, l);
      if (!parts) continue;
      if (n->op == BinaryOp::FloorDiv) return binary(BinaryOp::FloorDiv, parts->whole, n->b);
      return part == d ? parts->rest : add(binary(BinaryOp::FloorMod, parts->whole, n->b), parts->rest);
    }
    return std::nullopt;
  });
}

SharedLoads name_shared_loads(Body body, VarId lane, Lowering& l,
                              function_ref<analysis::BodyOrder(const Body&)> order_of,
                              function_ref<bool(BufferId)> is_memory, function_ref<bool(const Load&)> may_load) {
  return Naming(std::move(body), lane, l, order_of, is_memory, may_load).all();
}

}  // namespace tilewright::passes
