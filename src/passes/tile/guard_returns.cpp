#include "passes/tile/guard_returns.h"

#include "analysis/body_order.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

class Guards {
 public:
  Guards(const TileProgram& p, const Launch& launch)
      : p_(p),
        launch_(launch),
        of_threads_(launch.thread.begin(), launch.thread.end()),
        written_(changed_roots(launch.body, p)) {}

  Body body(const Body& in) {
    Body out;
    for (size_t i = 0; i < in.size(); ++i) {
      const auto* n = in[i].as<If>();
      const Body rest(in.begin() + static_cast<std::ptrdiff_t>(i) + 1, in.end());
      if (n && n->else_body.empty() && n->then_body.size() == 1 && n->then_body[0].as<Return>() && multiplies(rest) &&
          is_of_block(n->condition)) {
        out.push_back(make_stmt(If{logical_not(n->condition), body(rest), {}}, in[i]->location));
        return out;
      }
      name(in[i]);
      out.push_back(in[i]);
    }
    return out;
  }

  // Where maps leave nothing of a tile unless a number is positive, all that comes to be left is a branch of that.
  Body where_something_is_left(const Body& in) {
    std::map<VarId, size_t> named;
    size_t first = 0;
    for (; first < in.size() && !multiplies({in[first]}); ++first) {
      name(in[first]);
      if (const auto* n = in[first].as<Let>()) named[n->var] = first;
    }
    const std::optional<Expr> rows = first < in.size() ? bound_of_all(in) : std::nullopt;
    if (!rows || constant_int(*rows) || !is_of_block(*rows)) return in;
    size_t begin = 0;
    for (VarId v : used_vars(*rows)) {
      if (std::ranges::find(launch_.block, v) != launch_.block.end()) continue;
      const auto found = named.find(v);
      if (found == named.end()) return in;
      begin = std::max(begin, found->second + 1);
    }
    while (begin < in.size() && in[begin].as<Let>()) ++begin;
    if (begin > first) return in;
    const auto at = in.begin() + static_cast<std::ptrdiff_t>(begin);
    if (!std::all_of(at, in.end(), [&](const Stmt& s) { return !leaves(s, {}) || s.as<Map>(); })) return in;
    if (std::any_of(in.begin(), at, [&](const Stmt& s) { return leaves(s, {}); })) return in;
    Body out(in.begin(), at);
    const Expr some = binary(BinaryOp::Lt, constant((*rows)->type, int64_t{0}), *rows);
    out.push_back(make_stmt(If{some, Body(at, in.end()), {}}, in[first]->location));
    return out;
  }

 private:
  // Whether others may see what the statement does, or it orders threads: outside of branches where a point of
  // `points` is below a number of the block's, if there are such.
  bool leaves(const Stmt& s, const std::set<VarId>& points, std::optional<Expr>* bound = nullptr) const {
    if (const auto* n = s.as<If>(); n && bound && n->else_body.empty())
      if (const Expr rows = bound_of(n->condition, points); rows && (!*bound || equal(**bound, rows))) {
        *bound = rows;
        return std::ranges::any_of(n->then_body, [&](const Stmt& x) { return orders(x); });
      }
    bool out = orders(s);
    for (const Effect& e : own_effects_of(s).list)
      out = out || (e.access != Access::Read && e.region.valid() &&
                    p_.buffer(p_.root(e.region.buffer)).space == Space::Global);
    std::set<VarId> inside = points;
    if (const auto* map = s.as<Map>()) inside.insert(map->vars.begin(), map->vars.end());
    for_each_body(s, [&](const Body& b) {
      for (const Stmt& x : b) out = out || leaves(x, inside, bound);
    });
    return out;
  }
  static bool orders(const Stmt& s) {
    bool plain = s.as<Let>() || s.as<Store>() || s.as<Atomic>() || s.as<For>() || s.as<If>() || s.as<Map>() ||
                 s.as<Copy>() || s.as<Fill>() || s.as<Gemm>() || s.as<Reduce>() || s.as<Assume>();
    if (const auto* n = s.as<Copy>()) plain = plain && n->completion.immediate();
    if (const auto* n = s.as<Gemm>()) plain = plain && n->completion.immediate();
    for_each_body(s, [&](const Body& b) {
      for (const Stmt& x : b) plain = plain && !orders(x);
    });
    return !plain;
  }
  // Of `point < rows` and other things.
  static Expr bound_of(const Expr& condition, const std::set<VarId>& points) {
    const auto* n = condition.as<Binary>();
    if (!n) return {};
    if (n->op == BinaryOp::And) {
      const Expr left = bound_of(n->a, points);
      return left ? left : bound_of(n->b, points);
    }
    const auto* v = n->op == BinaryOp::Lt ? n->a.as<Var>() : nullptr;
    return v && points.contains(v->id) &&
                   std::ranges::none_of(used_vars(n->b), [&](VarId x) { return points.contains(x); })
               ? n->b
               : Expr{};
  }
  // The number below which all points lie that leave something.
  std::optional<Expr> bound_of_all(const Body& in) const {
    std::optional<Expr> bound;
    for (const Stmt& s : in)
      if (leaves(s, {}, &bound)) return std::nullopt;
    return bound;
  }
  // Of blocks and memory that the launch does not write, so that all threads see the same, whenever they look.
  bool is_of_block(const Expr& value) const {
    bool fits = true;
    walk(value, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      fits = fits &&
             !(n && (p_.buffer(n->buffer).space != Space::Global || analysis::may_overlap(n->buffer, written_, p_)));
    });
    for (VarId v : used_vars(value)) fits = fits && !of_threads_.contains(v);
    return fits;
  }
  static bool multiplies(const Body& body) {
    bool found = false;
    walk(body, [&](const Stmt& s) { found = found || s.as<Gemm>(); });
    return found;
  }
  // Names that threads may not agree on.
  void name(const Stmt& s) {
    if (const auto* n = s.as<Let>(); n && !is_of_block(n->value)) of_threads_.insert(n->var);
    if (s.as<Let>()) return;
    for (VarId v : bound_vars({s})) of_threads_.insert(v);
  }

  const TileProgram& p_;
  const Launch& launch_;
  std::set<VarId> of_threads_;
  const std::set<BufferId> written_;
};

}  // namespace

TileProgram guard_returns(TileProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    program.launches[i].body = Guards(program, program.launches[i]).body(program.launches[i].body);
  return program;
}

TileProgram skip_empty_tiles(TileProgram program) {
  for (size_t i = 0; i < program.launches.size(); ++i)
    program.launches[i].body = Guards(program, program.launches[i]).where_something_is_left(program.launches[i].body);
  return program;
}

}  // namespace tilewright::passes
