#include "passes/tile/name_locals.h"

#include <set>

#include "ir/buffer_vars.h"
#include "ir/effects.h"
#include "ir/match.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/role_code.h"
#include "passes/tile/inline_lets.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kMostTurns = 32;  // of a loop that is written out: each keeps names in registers

// Names of what variables hold; those that are not there hold what nobody knows.
using Held = std::map<BufferId, Expr>;

class LocalNames {
 public:
  LocalNames(TileProgram& p, const Launch& launch) : p_(p), locals_(scalars(launch)) {}
  Body run(const Body& body) {
    if (!has_pipeline(body)) return body;
    Held held;
    Body out = named(body, held);
    if (!found_) return body;
    std::set<BufferId> read;
    walk_exprs(out, [&](const Expr& e) {
      if (const auto* n = e.as<Load>()) read.insert(n->buffer);
    });
    return rewrite(out, [&](const Stmt& s) -> std::optional<Body> {
      const auto* n = local_store(s);
      return n && !read.contains(n->to.buffer) ? std::optional(Body{}) : std::nullopt;
    });
  }

 private:
  static bool has_pipeline(const Body& body) {
    bool found = false;
    walk(body, [&](const Stmt& s) {
      const auto* loop = s.as<For>();
      found = found || (loop && loop->kind == LoopKind::Pipelined);
    });
    return found;
  }
  // Integers of one element that are stored and loaded, and nothing else. What points of a map store is theirs.
  std::set<BufferId> scalars(const Launch& launch) const {
    std::set<BufferId> found, other;
    const auto index = static_cast<int32_t>(&launch - p_.launches.data());
    for (size_t i = 0; i < p_.buffers.size(); ++i) {
      const Buffer& b = p_.buffers[i];
      const BufferId id{static_cast<uint32_t>(i)};
      if (b.is_view()) other.insert(b.root);
      if (b.launch == index && b.space == Space::Local && b.rank() == 0 && !b.is_view() && !b.reducer &&
          !b.type.is_float())
        found.insert(id);
    }
    walk(launch.body, [&](const Stmt& s) {
      if (s.as<Map>()) for_each_body(s, [&](const Body& body) { other.merge(stored(body)); });
      if (s.as<Store>()) return;
      for (const Effect& e : own_effects_of(s).list)
        if (e.region.valid()) other.insert(e.region.buffer);
      for_each_region(s, [&](const Region& r) { other.insert(r.buffer); });
    });
    for (BufferId id : other) found.erase(id);
    return found;
  }
  const Store* local_store(const Stmt& s) const {
    const auto* n = s.as<Store>();
    return n && n->queue == Queue::None && locals_.contains(n->to.buffer) ? n : nullptr;
  }
  std::set<BufferId> stored(const Body& body) const {
    std::set<BufferId> out;
    walk(body, [&](const Stmt& s) {
      if (const auto* n = s.as<Store>()) out.insert(n->to.buffer);
    });
    return out;
  }
  Expr read(const Expr& e, const Held& held) {
    return rewrite(e, [&](const Expr& x) -> std::optional<Expr> {
      const auto* n = x.as<Load>();
      const auto found = n ? held.find(n->buffer) : held.end();
      if (found == held.end()) return std::nullopt;
      found_ = true;
      return found->second;
    });
  }
  static void forget(Held& held, const std::set<BufferId>& ids) {
    for (BufferId id : ids) held.erase(id);
  }
  // A value has a name, for it is read more than once.
  void hold(BufferId id, const Expr& value, LocationId at, Held& held, Body& out) {
    if (value.as<Const>() || value.as<Var>()) {
      held[id] = value;
      return;
    }
    const VarId name = p_.new_var(p_.buffer(id).name, p_.buffer(id).type);
    out.push_back(make_stmt(Let{name, value}, at));
    held[id] = var(name, p_.buffer(id).type);
  }
  // Nothing but names and variables: what may be written out.
  bool only_computes(const Body& body) const {
    return std::ranges::all_of(body, [&](const Stmt& s) {
      const auto* n = s.as<If>();
      return s.as<Let>() || local_store(s) || (n && only_computes(n->then_body) && only_computes(n->else_body));
    });
  }
  bool only_chooses(const Body& body, const Held& held) const {
    return std::ranges::all_of(body, [&](const Stmt& s) {
      if (const auto* n = s.as<If>()) return only_chooses(n->then_body, held) && only_chooses(n->else_body, held);
      const auto* n = local_store(s);
      return n && held.contains(n->to.buffer);
    });
  }

  Body named(const Body& in, Held& held) {
    Body out;
    for (const Stmt& s : in) {
      if (const auto* n = local_store(s)) {
        hold(n->to.buffer, read(n->value, held), s->location, held, out);
        out.push_back(make_stmt(Store{n->to, held.at(n->to.buffer)}, s->location));
      } else if (const auto* loop = s.as<For>()) {
        if (binds_buffers(p_, s) || !write_out(*loop, held, out))
          out.push_back(inside(name_bounds(s, held, out), held));
      } else if (const auto* branch = s.as<If>()) {
        if (!choose(*branch, s->location, held, out)) out.push_back(inside(s, held));
      } else {
        out.push_back(inside(s, held));
      }
    }
    return out;
  }
  // A statement whose bodies may run any number of times: what they store is not known there, nor behind.
  Stmt inside(const Stmt& s, Held& held) {
    std::set<BufferId> changed;
    for_each_body(s, [&](const Body& body) { changed.merge(stored(body)); });
    const bool again = s.as<While>();  // its condition is read behind its body too
    if (again) forget(held, changed);
    Stmt out = with_exprs(s, [&](const Expr& e) { return read(e, held); });
    if (const auto* n = s.as<If>()) {
      Held then_held = held, else_held = held;
      If f{out.as<If>()->condition, named(n->then_body, then_held), named(n->else_body, else_held)};
      forget(held, changed);
      return make_stmt(std::move(f), s->location);
    }
    forget(held, changed);
    return with_bodies(out, [&](const Body& body) {
      Held own = held;
      return named(body, own);
    });
  }
  // What says how often a loop runs that is a pipeline, or is around one, is read from memory before the loop.
  Stmt name_bounds(const Stmt& loop, const Held& held, Body& out) {
    if (!has_pipeline({loop})) return loop;
    std::vector<std::pair<Expr, Expr>> named;
    const auto name = [&](const Expr& e) {
      const auto same = std::ranges::find_if(named, [&](const auto& n) { return equal(n.first, e); });
      if (same != named.end()) return same->second;
      const VarId v = p_.new_var("bound", e->type);
      out.push_back(make_stmt(Let{v, e}, loop->location));
      named.emplace_back(e, var(v, e->type));
      found_ = true;
      return named.back().second;
    };
    return with_exprs(loop, [&](const Expr& e) {
      const Expr bound = read(e, held);
      bool reads = false, chooses = false;
      walk(bound, [&](const Expr& x) { reads = reads || x.as<Load>(), chooses = chooses || x.as<Select>(); });
      if (reads && chooses) return name(bound);  // a side that is not taken is not read
      return rewrite(bound, [&](const Expr& x) { return x.as<Load>() ? std::optional(name(x)) : std::nullopt; });
    });
  }
  bool write_out(const For& loop, Held& held, Body& out) {
    const auto turns = constant_int(loop.extent);
    if (!turns || *turns > kMostTurns || loop.kind == LoopKind::Pipelined || !only_computes(loop.body)) return false;
    if (stored(loop.body).empty()) return false;
    for (int64_t i = 0; i < *turns; ++i) {
      const Substitution turn{{loop.var, add(loop.begin, constant(loop.begin->type, i))}};
      append(out, named(renamed(p_, substitute(loop.body, turn)), held));
    }
    return true;
  }
  // A select evaluates the side that it takes, and no more than that: as a branch does.
  bool choose(const If& branch, LocationId at, Held& held, Body& out) {
    if (!only_chooses(branch.then_body, held) || !only_chooses(branch.else_body, held)) return false;
    Held chosen = held;
    for (BufferId id : choices(branch, chosen)) {
      hold(id, chosen.at(id), at, held, out);
      out.push_back(make_stmt(Store{{id, {}}, held.at(id)}, at));
    }
    return true;
  }
  // What variables hold behind a branch; those that it stores.
  std::set<BufferId> choices(const If& branch, Held& held) {
    const Expr condition = read(branch.condition, held);
    Held then_held = held, else_held = held;
    for (auto [body, side] : {std::pair{&branch.then_body, &then_held}, std::pair{&branch.else_body, &else_held}})
      for (const Stmt& s : *body)
        if (const auto* n = s.as<If>())
          choices(*n, *side);
        else
          (*side)[local_store(s)->to.buffer] = read(local_store(s)->value, *side);
    std::set<BufferId> changed = stored(branch.then_body);
    changed.merge(stored(branch.else_body));
    for (BufferId id : changed) held[id] = select(condition, then_held.at(id), else_held.at(id));
    return changed;
  }

  TileProgram& p_;
  const std::set<BufferId> locals_;
  bool found_ = false;  // a variable that is read by a name
};

}  // namespace

TileProgram name_locals(TileProgram program) {
  for (Launch& launch : program.launches) launch.body = LocalNames(program, launch).run(launch.body);
  return inline_lets(std::move(program));
}

}  // namespace tilewright::passes
