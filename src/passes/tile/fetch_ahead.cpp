#include "passes/tile/fetch_ahead.h"

#include <set>

#include "analysis/body_order.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kMostTurns = 8;  // of a loop: each keeps a value in a register

class FetchAhead {
 public:
  FetchAhead(TileProgram& p, const Launch& launch)
      : p_(p), launch_(&launch - p.launches.data()), written_(changed_roots(launch.body, p)) {}
  Body run(const Body& in) {
    return hoisted(rewrite(in, [&](const Stmt& s) -> std::optional<Body> {
      if (const auto* n = s.as<For>()) return with_body(*n, s->location);
      if (const auto* n = s.as<While>()) return with_body(*n, s->location);
      if (const auto* n = s.as<Role>()) return with_body(*n, s->location);
      const auto* n = s.as<If>();
      if (!n) return std::nullopt;
      return Body{make_stmt(If{n->condition, hoisted(n->then_body), hoisted(n->else_body)}, s->location)};
    }));
  }

 private:
  template <class Node>
  Body with_body(const Node& n, LocationId at) {
    Node out = n;
    out.body = hoisted(n.body);
    return {make_stmt(std::move(out), at)};
  }
  Body hoisted(const Body& in) {
    Body out;
    for (const Stmt& s : in) {
      const auto* loop = s.as<For>();
      const std::optional<Ahead> ahead = loop ? fetched(*loop, s->location) : std::nullopt;
      if (!ahead) {
        out.push_back(s);
        continue;
      }
      auto at = out.end();
      while (at != out.begin() && std::prev(at)->as<Wait>()) --at;
      out.insert(at, ahead->before.begin(), ahead->before.end());
      out.push_back(make_stmt(ahead->loop, s->location));
    }
    return out;
  }
  struct Ahead {
    Body before;
    For loop;
  };
  std::optional<Ahead> fetched(const For& loop, LocationId at) {
    const auto turns = constant_int(loop.extent);
    if (loop.kind != LoopKind::Serial || !turns || *turns < 2 || *turns > kMostTurns || !copies(loop.body))
      return std::nullopt;
    const DType type = p_.var(loop.var).type;
    std::set<VarId> inside = bound_vars(loop.body);
    Ahead out{{}, loop};
    out.loop.body.clear();
    for (const Stmt& s : loop.body) {
      const auto* store = s.as<Store>();
      const bool known = store && is_own(*store) && reads_constant_memory(store->value) &&
                         std::ranges::none_of(used_vars(store->value), [&](VarId v) { return inside.contains(v); });
      if (!known) {
        out.loop.body.push_back(s);
        continue;
      }
      const BufferId kept = new_local(p_.buffer(store->to.buffer), *turns);
      const DType element = p_.buffer(kept).type;
      auto value = [&](int64_t i) { return load(kept, {constant(i)}, element); };
      for (int64_t i = 0; i < *turns; ++i) {
        const Substitution turn{{loop.var, add(loop.begin, constant(type, i))}};
        out.before.push_back(make_stmt(Store{{kept, {constant(i)}}, substitute(store->value, turn)}, at));
      }
      out.loop.body.push_back(make_stmt(Store{store->to, value(0)}, s->location));
      for (int64_t i = 0; i + 1 < *turns; ++i)
        out.loop.body.push_back(make_stmt(Store{{kept, {constant(i)}}, value(i + 1)}, s->location));
    }
    return out.before.empty() ? std::nullopt : std::optional(std::move(out));
  }
  static bool copies(const Body& body) {
    bool found = false, alone = true;
    walk(body, [&](const Stmt& s) {
      found = found || (s.as<Store>() && s.as<Store>()->queue == Queue::CpAsync);
      alone = alone && effects_of(s).scope != Scope::Collective;
      alone = alone && !s.as<Break>() && !s.as<Continue>() && !s.as<Return>();  // what such a turn reads may not exist
    });
    return found && alone;
  }
  // A scalar of each thread.
  bool is_own(const Store& s) const {
    const Buffer& b = p_.buffer(s.to.buffer);
    return s.queue == Queue::None && b.space == Space::Local && s.to.indices.empty() && !b.is_view();
  }
  bool reads_constant_memory(const Expr& value) const {
    bool some = false, all = true;
    walk(value, [&](const Expr& e) {
      const auto* n = e.as<Load>();
      if (!n) return;
      const BufferId root = p_.root(n->buffer);
      const Buffer& from = p_.buffer(root);  // what an address leads to, anybody may write
      some = true,
      all = all && from.space == Space::Global && !from.address && !analysis::may_overlap(root, written_, p_);
    });
    return some && all;
  }
  BufferId new_local(const Buffer& like, int64_t turns) {
    Buffer b;
    b.name = like.name + "_ahead", b.type = like.type, b.space = Space::Local, b.shape = {constant(turns)};
    b.launch = static_cast<int32_t>(launch_), b.location = like.location;
    return p_.new_buffer(std::move(b));
  }

  TileProgram& p_;
  const std::ptrdiff_t launch_;
  const std::set<BufferId> written_;
};

}  // namespace

TileProgram fetch_ahead(TileProgram program) {
  for (Launch& launch : program.launches) launch.body = FetchAhead(program, launch).run(launch.body);
  return program;
}

}  // namespace tilewright::passes
