#include "passes/tile/clear_in_gemms.h"

#include "ir/effects.h"
#include "ir/extent.h"
#include "ir/jumps.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "ir/zero.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Clearer {
 public:
  Clearer(const ProgramTables& p, const Body& whole) : p_(p) {
    walk(whole, [&](const Stmt& s) {
      for (const Effect& e : effects_of(s).list)
        if (e.region.valid()) ++uses_[p_.root(e.region.buffer)];
    });
  }

  // Where statements of a loop are counted, none goes away.
  Body run(const Body& in, bool counted = false) const {
    Body out;
    for (size_t i = 0; i < in.size(); ++i) {
      if (in[i].as<Gemm>()) {
        out.push_back(counted ? in[i] : clearing(in[i], out));
        continue;
      }
      if (const auto* n = in[i].as<If>()) {
        out.push_back(make_stmt(If{n->condition, run(n->then_body), run(n->else_body)}, in[i]->location));
        continue;
      }
      const auto* loop = in[i].as<For>();
      if (!loop) {
        out.push_back(in[i]);
        continue;
      }
      For f = *loop;
      f.body = run(f.body, !f.order.empty());
      std::set<BufferId> between;  // what statements before the loop use, behind the fill
      for (size_t fill = out.size(); fill-- > 0;) {
        if (may_jump({out[fill]})) break;  // past the loop
        const auto* n = out[fill].as<Fill>();
        if (n && !between.contains(n->to.buffer) && (clears_instead(out[fill], f) || clears_every_turn(out[fill], f))) {
          out.erase(out.begin() + static_cast<std::ptrdiff_t>(fill));
          continue;
        }
        between.merge(used_roots({out[fill]}, p_));
      }
      out.push_back(make_stmt(std::move(f), in[i]->location));
    }
    return out;
  }
  // A gemm behind a fill of its result, with nothing between that has to do with it: the fill goes.
  Stmt clearing(const Stmt& s, Body& before) const {
    Gemm g = *s.as<Gemm>();
    for (size_t i = before.size(); i-- > 0;) {
      if (may_jump({before[i]})) break;
      if (!uses(before[i], p_.root(g.c.buffer))) continue;
      if (!fills(before[i], g)) break;
      before.erase(before.begin() + static_cast<std::ptrdiff_t>(i));
      g.clear = constant(boolean, int64_t{1});
      return make_stmt(std::move(g), s->location);
    }
    return s;
  }
  bool fills(const Stmt& s, const Gemm& g) const {
    const auto* fill = s.as<Fill>();
    if (!fill || !is_zero(fill->value) || fill->to.buffer != g.c.buffer) return false;
    const Buffer& b = p_.buffer(g.c.buffer);
    return is_cleared_here(b) && is_whole(fill->to, b) && is_whole(g.c, b) && !g.clear && g.completion.immediate() &&
           !multiplies(g, g.c.buffer);
  }
  // choose_mma says what is with doubles.
  static bool is_cleared_here(const Buffer& b) { return b.space == Space::Fragment && !b.is_view() && b.type != f64; }
  bool clears_instead(const Stmt& s, For& loop) const {
    const auto* fill = s.as<Fill>();
    if (!fill || !is_zero(fill->value) || constant_int(loop.extent).value_or(0) < 1 || may_jump(loop.body))
      return false;
    const BufferId c = fill->to.buffer;
    const Buffer& b = p_.buffer(c);
    if (!is_cleared_here(b)) return false;
    Stmt* only = nullptr;
    for (Stmt& x : loop.body) {
      if (!uses(x, c)) continue;
      if (only || !x.as<Gemm>()) return false;
      only = &x;
    }
    if (!only) return false;
    Gemm g = *only->as<Gemm>();
    if (!is_whole(fill->to, b) || !is_whole(g.c, b)) return false;
    if (g.clear || multiplies(g, c)) return false;
    g.clear = binary(BinaryOp::Eq, var(loop.var, p_.var(loop.var).type), loop.begin);
    *only = make_stmt(std::move(g), (*only)->location);
    return true;
  }
  // Cleared before the loop and at the end of each turn for the gemm of the next, and not asked for after the loop.
  bool clears_every_turn(const Stmt& s, For& loop) const {
    const auto* fill = s.as<Fill>();
    if (!fill || !is_zero(fill->value) || may_jump(loop.body)) return false;
    const BufferId c = fill->to.buffer;
    const Buffer& b = p_.buffer(c);
    if (b.space != Space::Fragment || b.is_view() || !is_whole(fill->to, b)) return false;
    std::vector<Stmt*> users;
    int inside = 0;
    for (Stmt& x : loop.body) {
      if (uses(x, c)) users.push_back(&x);
      walk({x}, [&](const Stmt& y) {
        for (const Effect& e : effects_of(y).list) inside += e.region.valid() && p_.root(e.region.buffer) == c;
      });
    }
    if (users.size() < 2 || uses_.at(c) != inside + 1) return false;
    const auto* first = users.front()->as<Gemm>();
    const auto* last = users.back()->as<Fill>();
    if (!first || !last || !is_zero(last->value) || !is_whole(last->to, b) || !is_whole(first->c, b)) return false;
    if (first->clear || multiplies(*first, c)) return false;
    Gemm g = *first;
    g.clear = constant(boolean, int64_t{1});
    *users.front() = make_stmt(std::move(g), (*users.front())->location);
    loop.body.erase(loop.body.begin() + (users.back() - loop.body.data()));
    return true;
  }
  // By its own name or by a view's.
  bool uses(const Stmt& s, BufferId c) const { return used_roots({s}, p_).contains(c); }
  bool multiplies(const Gemm& g, BufferId c) const {
    return p_.root(g.a.buffer) == c || p_.root(g.b.buffer) == c || (g.is_sparse() && p_.root(g.metadata.buffer) == c);
  }

 private:
  const ProgramTables& p_;
  std::map<BufferId, int> uses_;
};

}  // namespace

Body clear_in_gemms(const ProgramTables& program, const Body& body) { return Clearer(program, body).run(body); }

}  // namespace tilewright::passes
