#include "passes/schedule/team_iterations.h"

#include "ir/extent.h"
#include "ir/operators.h"
#include "passes/schedule/role_code.h"
#include "passes/tile/narrow_columns.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Iterations {
 public:
  Iterations(const TeamLoop& l, const TeamExchange& x, int team) : l_(l), x_(x), team_(team) {}

  Body all() const {
    Body out;
    if (team_ == 0) {  // no iteration is in front of the first
      append(out, scores({}));
      own({}, false, out);
    }
    const VarId v = l_.p.new_var("pair", i32);
    const Count count{var(v, i32), {}, 2 - team_};
    const Expr pairs = binary(BinaryOp::FloorDiv, add(l_.extent(), constant(team_ - 1)), constant(2));
    Body pair = scores(count);
    take_over(count.before(), pair);
    own(count, true, pair);
    out.push_back(l_.serial(v, pairs, std::move(pair)));
    const Count last{{}, l_.extent(), -1};
    Body rest;
    take_over(last, rest);
    take_rows(l_, x_, l_.parts.handed_later, x_.later, 1 - team_, last, rest);
    rest.push_back(drain(0));
    const Expr of_peer =
        binary(BinaryOp::Eq, binary(BinaryOp::FloorMod, last.number(), constant(2)), constant(1 - team_));
    out.push_back(l_.stmt(If{of_peer, std::move(rest), {}}));
    return out;
  }

 private:
  // ---- slots
  void await(const TeamRing& r, const Count& count, Body& out, int64_t panel = 0) const {
    append(out, wait_full(r.ring, count.in(r.ring.slots), l_.parts.at, panel));
  }
  void give_back(const TeamRing& r, const Count& count, Body& out) const {
    append(out, release(r.ring, count.in(r.ring.slots).slot, l_.parts.at));
  }
  // The team is the last to read its half of the values.
  void give_back_half(const Count& count, Body& out) const {
    for (const TeamRing& r : l_.rings)
      if (r.brought.half == team_) give_back(r, count, out);
  }
  void wait_for_values(const Count& count, Body& out) const {
    for (const TeamRing& r : l_.rings)
      if (r.brought.half == team_ && !r.in_scores) await(r, count, out);
  }
  Stmt drain(int64_t pending) const { return l_.stmt(Drain{Queue::Wgmma, pending, {}}); }

  // ---- products
  const Gemm& first_product() const { return *l_.parts.scores[0].as<Gemm>(); }
  // Whether zeros before the first product are all that is there.
  bool clears() const {
    if (l_.parts.before.size() != 1 || first_product().clear) return false;
    const auto* fill = l_.parts.before[0].as<Fill>();
    const auto* zero = fill ? fill->value.as<Const>() : nullptr;
    return zero && zero->bits == 0 && fill->to.buffer == first_product().c.buffer;
  }
  BufferId half_of(BufferId tile, int half) const { return l_.halves.at(tile)[static_cast<size_t>(half)]; }
  // The products of the scores in the order in which their slots are given back: what only they read, then the half of
  // the values that is this team's.
  Body products() const {
    Body out, halves;
    auto put = [&](Gemm g, const Stmt& s, Body& to) {
      g.clear = {}, g.completion.queue = Queue::Wgmma, g.policy = GemmPolicy::Square;
      if (out.empty() && halves.empty()) g.clear = clears() ? constant(boolean, int64_t{1}) : first_product().clear;
      to.push_back(make_stmt(std::move(g), s->location));
    };
    for (const Stmt& s : l_.parts.scores)
      if (s.as<Gemm>()->b.buffer != l_.parts.values) put(*s.as<Gemm>(), s, out);
    for (const Stmt& s : l_.parts.scores)
      for (const int half : {team_, 1 - team_}) {
        Gemm g = *s.as<Gemm>();
        if (g.b.buffer != l_.parts.values) continue;
        for (Region* r : {&g.a, &g.b}) *r = whole(half_of(r->buffer, half), l_.p);
        put(std::move(g), s, halves);
      }
    append(out, std::move(halves));
    return out;
  }
  // A product of as many as there are panels, each of which it waits for.
  void by_panels(const Stmt& s, const TeamRing& r, const Count& count, Body& out) const {
    for (int64_t panel = 0; panel < r.ring.panels; ++panel) {
      await(r, count, out, panel);
      Gemm part = *s.as<Gemm>();
      l_.narrow(part.a, r.ring, panel), l_.narrow(part.b, r.ring, panel);
      if (panel > 0) part.clear = {};
      out.push_back(make_stmt(std::move(part), s->location));
    }
  }
  Body scores(const Count& count) const {
    Body code;
    if (!clears()) append(code, l_.parts.before);
    std::set<BufferId> here;
    for (Stmt& s : products()) {
      const Gemm& g = *s.as<Gemm>();
      if (const TeamRing* r = l_.ring(g.b.buffer); r && r->ring.panels > 1) {
        by_panels(s, *r, count, code);
        continue;
      }
      for (const Region* x : {&g.a, &g.b})
        if (const TeamRing* r = l_.ring(x->buffer); r && here.insert(x->buffer).second) await(*r, count, code);
      code.push_back(std::move(s));
    }
    code.push_back(l_.stmt(Commit{Queue::Wgmma}));
    return l_.in_turn(code, count);
  }
  // result = result * scale + left values, for the team's columns.
  void add_product(BufferId left, const Count& count, Body& out) const {
    Body code;
    for (const Stmt& s : l_.parts.rescale) code.push_back(of_columns(l_, s, team_));
    Gemm g = *l_.parts.product.as<Gemm>();
    g.a = whole(left, l_.p), g.b = whole(half_of(l_.parts.values, team_), l_.p);
    g.c.extent.back() = constant(i32, l_.parts.half);
    g.policy = GemmPolicy::Square, g.completion.queue = Queue::Wgmma;
    code.push_back(make_stmt(std::move(g), l_.parts.product->location)), code.push_back(l_.stmt(Commit{Queue::Wgmma}));
    append(out, l_.in_turn(code, count));
  }

  // ---- an iteration
  // The other team waited for the values before it told that its scores are ready.
  void take_over(const Count& count, Body& out) const {
    take_rows(l_, x_, l_.parts.handed, x_.ready, 1 - team_, count, out);
    wait_for_values(count, out);
    add_product(x_.scores, count, out);
  }
  // `beside`: the product with the other team's scores may still run.
  void own(const Count& count, bool beside, Body& out) const {
    out.push_back(drain(beside ? 1 : 0));
    for (const TeamRing& r : l_.rings) {
      if (r.brought.half >= 0 || r.brought.of.in_own) continue;
      if (!r.in_scores) await(r, count, out);  // nobody reads it: it has to be there all the same
      give_back(r, count, out);
    }
    for (const TeamRing& r : l_.rings)
      if (r.brought.of.in_own && !r.in_scores) await(r, count, out);
    append(out, l_.in_turn(l_.parts.own, count));
    for (const TeamRing& r : l_.rings)
      if (r.brought.of.in_own) give_back(r, count, out);
    if (beside) {
      out.push_back(drain(0));
      give_back_half(count.before(), out);
    }
    Copy scores;
    scores.from = whole(l_.parts.left, l_.p), scores.to = whole(x_.scores, l_.p);
    out.push_back(l_.stmt(std::move(scores)));
    leave_rows(l_, x_, l_.parts.handed, x_.ready, team_, out);
    wait_for_values(count, out);
    add_product(l_.parts.left, count, out);
    if (beside) take_rows(l_, x_, l_.parts.handed_later, x_.later, 1 - team_, count.before(), out);
    append(out, l_.in_turn(l_.parts.later, count));
    if (x_.later.valid()) leave_rows(l_, x_, l_.parts.handed_later, x_.later, team_, out);
    out.push_back(drain(0));
    give_back_half(count, out);
  }

  const TeamLoop& l_;
  const TeamExchange& x_;
  const int team_;
};

}  // namespace

Body iterations_of(const TeamLoop& l, const TeamExchange& x, int team) { return Iterations(l, x, team).all(); }

Stmt of_columns(const TeamLoop& l, const Stmt& s, int team) {
  auto out = narrowed(l.p, s, l.parts.result, team * l.parts.half, l.parts.half);
  check_internal(out.has_value(), "columns that were apart are not");
  return *out;
}

}  // namespace tilewright::passes
