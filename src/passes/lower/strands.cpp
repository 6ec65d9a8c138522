#include "passes/lower/strands.h"

#include "analysis/collectives.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/threads.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using namespace ir;
using analysis::ThreadSet;
using analysis::Uniformity;

namespace {

struct Part {
  int64_t begin = 0, end = 0;
};

std::vector<Part> parts_of(const Launch& launch) {
  std::set<int64_t> cuts{0, launch.threads[0]};
  walk(launch.body, [&](const Stmt& s) {
    if (const auto* role = s.as<Role>()) cuts.insert(role->begin), cuts.insert(role->end);
  });
  std::vector<Part> out;
  for (auto at = cuts.begin(); std::next(at) != cuts.end(); ++at) out.push_back({*at, *std::next(at)});
  return out;
}

// Results that the leading part hands to the others, and the meetings, by what they belong to.
struct Shared {
  std::map<std::pair<int64_t, int64_t>, int64_t> meetings;
  std::map<StmtId, BufferId> results;
};

class Cut {
 public:
  Cut(const Part& part, const Uniformity& u, int32_t number, ProgramTables& tables, Shared& shared)
      : part_(part), u_(u), number_(number), tables_(tables), shared_(shared) {}

  Body body(const Body& in) {
    Body out;
    for (const Stmt& s : in) statement(s, out);
    return out;
  }

 private:
  void statement(const Stmt& s, Body& out) {
    if (const auto* role = s.as<Role>()) {
      if (role->begin > part_.begin || role->end < part_.end) return;
      const Body inside = body(role->body);
      out.insert(out.end(), inside.begin(), inside.end());
      return;
    }
    if (const auto* n = s.as<For>()) {
      For f = *n;
      f.body = body(n->body);
      return out.push_back(make_stmt(std::move(f), s->location));
    }
    if (const auto* n = s.as<While>()) return out.push_back(make_stmt(While{n->condition, body(n->body)}, s->location));
    if (const auto* n = s.as<If>())
      return out.push_back(make_stmt(If{n->condition, body(n->then_body), body(n->else_body)}, s->location));
    // What tells threads apart may be the same for all of a part.
    if (const auto* n = s.as<Atomic>(); n && !u_.happens_once(s)) {
      Atomic own = *n;
      own.each = true;
      return out.push_back(make_stmt(std::move(own), s->location));
    }
    const ThreadSet& set = u_.executing_set(s);
    const bool alone = set.begin[0] >= part_.begin && set.end[0] <= part_.end;
    if (alone) return out.push_back(s);
    together(s, set, out);
  }

  // What threads of several parts execute.
  void together(const Stmt& s, const ThreadSet& set, Body& out) {
    const bool leads = set.begin[0] == part_.begin;
    if (const auto* sync = s.as<Sync>()) {
      if (sync->scope == SyncScope::Block) return meet(set, s->location, out);
      return out.push_back(s);
    }
    if (const auto* n = s.as<Atomic>()) return atomic(*n, s, set, leads, out);
    if (const auto* n = s.as<Store>()) {
      const bool own = tables_.buffer(tables_.root(n->to.buffer)).space == Space::Local;
      if (own || leads || !u_.happens_once(s)) out.push_back(s);
      return;
    }
    if (const auto* n = s.as<Print>(); n && n->buffer.valid()) {
      if (leads) out.push_back(s);
      return;
    }
    const bool once = s.as<Expect>() && u_.is_uniform_control(s);
    if (analysis::is_of_one_thread(s, u_)) return out.push_back(s);
    if (!once && (effects_of(s).scope != Scope::Collective || s.as<SetRegisters>())) return out.push_back(s);
    if (is_tile_op(s) && touches_own_memory(s) && !s.as<Map>()) return out.push_back(s);  // each thread on its own
    refuse_own(s);
    meet(set, s->location, out);
    if (leads) out.push_back(s);
    meet(set, s->location, out);
  }

  // The leading part does it, and leaves the old value for the others.
  void atomic(const Atomic& n, const Stmt& s, const ThreadSet& set, bool leads, Body& out) {
    meet(set, s->location, out);
    if (!n.result.valid()) {
      if (leads) out.push_back(s);
      return meet(set, s->location, out);
    }
    const DType type = tables_.var(n.result).type;
    auto [at, fresh] = shared_.results.try_emplace(s->id);
    if (fresh) {
      Buffer b;
      b.name = tables_.var(n.result).name, b.type = type, b.space = Space::Shared, b.launch = number_;
      b.shape = {constant(1)};
      at->second = tables_.new_buffer(std::move(b));
    }
    const std::vector<Expr> first{constant(0)};
    if (leads) {
      out.push_back(s);
      out.push_back(make_stmt(Store{{at->second, first}, var(n.result, type)}, s->location));
    }
    meet(set, s->location, out);
    if (!leads) out.push_back(make_stmt(Let{n.result, load(at->second, first, type)}, s->location));
  }

  void meet(const ThreadSet& set, LocationId at, Body& out) {
    const auto next = kFirstMeeting + static_cast<int64_t>(shared_.meetings.size());
    const int64_t id = shared_.meetings.try_emplace({set.begin[0], set.end[0]}, next).first->second;
    Sync sync;
    sync.scope = SyncScope::Named, sync.barrier = constant(id), sync.count = set.end[0] - set.begin[0];
    out.push_back(make_stmt(std::move(sync), at));
  }

  bool is_own(BufferId id) const { return id.valid() && tables_.buffer(tables_.root(id)).space == Space::Local; }
  bool touches_own_memory(const Stmt& s) const {
    bool found = false;
    walk(Body{s}, [&](const Stmt& x) {
      for (const Effect& e : effects_of(x).list) found = found || is_own(e.region.buffer);
    });
    return found;
  }
  // The points of a Parallel run on the threads of all parts; one part can run them if they are nobody's in particular.
  void refuse_own(const Stmt& s) const {
    const bool vote = s.as<Vote>() != nullptr;
    bool own = vote;
    if (s.as<Map>()) {
      walk(Body{s}, [&](const Stmt& x) {
        own = own || x.as<Shuffle>() || x.as<Vote>();
        for (const Effect& e : effects_of(x).list) own = own || (e.access != Access::Read && is_own(e.region.buffer));
        for_each_expr(x, [&](const Expr& e) { own = own || !is_alike(e, s); });
      });
    }
    if (own)
      fail(Code::CpuRole, tables_.location(s->location),
           fmt::format("{} that each thread of the block does on its own values, in a block that has roles, is not "
                       "something the CPU engine runs",
                       vote ? "a vote" : "a Parallel"),
           kUseInterpreter);
  }
  // Whether what the expression takes from outside of the map is the same for all threads.
  bool is_alike(const Expr& e, const Stmt& map) const {
    const Map& n = *map.as<Map>();
    std::set<VarId> inside = bound_vars(n.body);
    inside.insert(n.vars.begin(), n.vars.end());
    bool alike = true;
    walk(e, [&](const Expr& x) {
      if (const auto* v = x.as<Var>(); v && !inside.contains(v->id)) alike = alike && u_.is_uniform(x, map);
      if (const auto* l = x.as<Load>(); l && is_own(l->buffer))
        alike =
            alike && u_.is_uniform(load(l->buffer, std::vector<Expr>(l->indices.size(), constant(0)), x->type), map);
    });
    return alike;
  }

  const Part part_;
  const Uniformity& u_;
  const int32_t number_;
  ProgramTables& tables_;
  Shared& shared_;
};

// The body with local buffers of its own.
Body with_own_locals(const Body& body, int32_t number, ProgramTables& tables) {
  std::map<BufferId, BufferId> others;
  const size_t count = tables.buffers.size();
  for (const bool views : {false, true}) {  // a view's root comes first
    for (uint32_t i = 0; i < count; ++i) {
      Buffer b = tables.buffers[i];
      if (b.launch != number || b.is_view() != views || tables.buffer(tables.root({i})).space != Space::Local) continue;
      if (views) b.root = others.at(b.root);
      others[{i}] = tables.new_buffer(std::move(b));
    }
  }
  return with_buffers(body, others);
}

}  // namespace

std::vector<Strand> strands_of(const Launch& launch, const Uniformity& uniformity, int32_t number,
                               ProgramTables& tables) {
  const std::vector<Part> parts = parts_of(launch);
  if (parts.size() == 1) {
    Launch whole = launch;
    bool roles = false;
    walk(launch.body, [&](const Stmt& s) { roles = roles || s.as<Role>(); });
    if (!roles) return {{std::move(whole), 0}};
  }
  std::vector<Strand> out;
  Shared shared;
  for (const Part& part : parts) {
    Strand strand{launch, part.begin};
    strand.launch.threads[0] = part.end - part.begin;
    const Body body = Cut(part, uniformity, number, tables, shared).body(launch.body);
    const Expr x = var(launch.thread[0], i32);
    strand.launch.body =
        with_own_locals(substitute(body, {{launch.thread[0], add(x, constant(part.begin))}}), number, tables);
    out.push_back(std::move(strand));
  }
  return out;
}

bool has_waits(const Launch& launch) {
  bool found = false;
  walk(launch.body, [&](const Stmt& s) { found = found || s.as<Role>() || s.as<Wait>() || s.as<Sync>(); });
  return found;
}

}  // namespace tilewright::passes
