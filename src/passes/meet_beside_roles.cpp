#include "passes/meet_beside_roles.h"

#include "analysis/uniformity.h"
#include "ir/effects.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/hazards.h"
#include "passes/lower/lowering.h"
#include "passes/role_groups.h"
#include "passes/tile/whole_turns.h"

namespace tilewright::passes {

using namespace ir;

namespace {

bool returns(const Stmt& s) {
  bool found = false;
  walk(Body{s}, [&](const Stmt& x) { found = found || x.as<Return>(); });
  return found;
}

class MeetBesideRoles {
 public:
  MeetBesideRoles(const ProgramTables& program, const Launch& launch)
      : program_(program), uniformity_(program, launch), hazards_(program, launch) {}

  Body body(const Body& in) {
    Body out;
    for (size_t i = 0; i < in.size();) {
      const size_t end = std::max(end_of_roles(in, i), i + 1);
      if (in[i].as<Role>())
        together(in, i, end, out);
      else
        statement(in[i], out);
      i = end;
    }
    return out;
  }

 private:
  void statement(const Stmt& s, Body& out) {
    if (all_meet(s)) {
      begin_with({});
      return out.push_back(s);
    }
    if (returns(s)) return together({s}, 0, 1, out);
    if (s.as<Continue>() && !again_.empty() && again_.back() && uniformity_.is_uniform_control(s))
      meet_before(again_.back(), out);
    if (const auto* n = s.as<If>(); n && is_taken_by_all(s, n->condition, n->then_body, n->else_body))
      return branch(*n, s->location, out);
    if (const auto* n = s.as<For>(); n && uniformity_.is_uniform(n->begin, s) && is_taken_by_all(s, n->extent, n->body))
      return for_loop(*n, s->location, out);
    if (const auto* n = s.as<While>(); n && is_taken_by_all(s, n->condition, n->body))
      return loop(*n, make_stmt(If{n->condition, {}, {}}, s->location), s->location, out);
    together({s}, 0, 1, out);
  }
  // Whether all threads of the block come by, and all or none go into each of the bodies.
  template <class... Bodies>
  bool is_taken_by_all(const Stmt& s, const Expr& asked, const Bodies&... bodies) const {
    const auto all = [&](const Body& b) { return b.empty() || uniformity_.is_uniform_control(b.front()); };
    return uniformity_.is_uniform_control(s) && uniformity_.is_uniform(asked, s) && (all(bodies) && ...);
  }
  void branch(If n, LocationId at, Body& out) {
    together({make_stmt(If{n.condition, {}, {}}, at)}, 0, 1, out);
    out.pop_back();
    const Body before = run_;
    n.then_body = body(n.then_body);
    const Body then = run_;
    begin_with(before);
    n.else_body = body(n.else_body);
    for (const Stmt& s : then) note(s);
    out.push_back(make_stmt(std::move(n), at));
  }
  void for_loop(const For& n, LocationId at, Body& out) {
    For bounds = n;
    bounds.body.clear();
    meet_before(make_stmt(std::move(bounds), at), out);
    loop(n, {}, at, out);
  }
  // An iteration begins as the loop does or as the one before ends. `again`: what is read before each, if anything.
  template <class Loop>
  void loop(Loop n, const Stmt& again, LocationId at, Body& out) {
    meet_before(again, out);
    Body open = run_;
    again_.push_back(again);
    body(n.body);
    open.insert(open.end(), run_.begin(), run_.end());
    if (may_jump(n.body)) open.insert(open.end(), n.body.begin(), n.body.end());
    begin_with(open);
    n.body = body(n.body);
    meet_before(again, n.body);
    again_.pop_back();
    for (const Stmt& s : open) note(s);
    out.push_back(make_stmt(std::move(n), at));
  }
  void meet_before(const Stmt& again, Body& out) {
    if (!again) return;
    together({again}, 0, 1, out);
    out.pop_back();
  }
  // Statements that different threads execute beside each other.
  void together(const Body& in, size_t first, size_t end, Body& out) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(first),
               behind = in.begin() + static_cast<std::ptrdiff_t>(end);
    if (std::any_of(begin, behind, [&](const Stmt& s) { return hazards_.conflicts(s); })) {
      Sync sync;
      sync.scope = SyncScope::Block;
      out.push_back(make_stmt(std::move(sync), (*begin)->location));
      begin_with({});
    }
    for (auto s = begin; s != behind; ++s) note(*s), out.push_back(*s);
  }
  void note(const Stmt& s) { run_.push_back(s), hazards_.add(s); }
  void begin_with(Body run) {
    run_.clear(), hazards_.clear();
    for (const Stmt& s : run) note(s);
  }
  // A barrier or a wait, or a tile op of the block, before and behind which threads meet.
  bool all_meet(const Stmt& s) const {
    if (s.as<Wait>()) return true;
    if (const auto* n = s.as<Sync>()) return n->scope != SyncScope::Warp;
    if (!is_tile_op(s)) return false;
    bool own = false;
    for (const Effect& e : effects_of(s).list)
      own = own || program_.buffer(program_.root(e.region.buffer)).space == Space::Local;
    return s.as<Map>() || !own;
  }
  static bool may_jump(const Body& body) {
    bool found = false;
    walk(body, [&](const Stmt& s) { found = found || s.as<Break>() || s.as<Continue>(); });
    return found;
  }

  const ProgramTables& program_;
  const analysis::Uniformity uniformity_;
  Hazards hazards_;
  Body run_;                 // since all threads last met
  std::vector<Stmt> again_;  // of the loops around: what is read before the next turn
};

}  // namespace

void meet_beside_roles(TileProgram& program, Launch& launch) {
  bool roles = false;
  walk(launch.body, [&](const Stmt& s) {
    const auto* role = s.as<Role>();
    roles = roles || (role && (role->begin > 0 || role->end < launch.thread_count()));
  });
  if (!roles) return;
  end_turns_together(program, launch);
  number_statements(launch);
  // Up to where some threads may be gone.
  const auto last = std::find_if(launch.body.begin(), launch.body.end(), returns);
  const Body rest(last == launch.body.end() ? last : last + 1, launch.body.end());
  const Body head(launch.body.begin(), launch.body.end() - static_cast<std::ptrdiff_t>(rest.size()));
  launch.body = MeetBesideRoles(program, launch).body(head);
  launch.body.insert(launch.body.end(), rest.begin(), rest.end());
}

}  // namespace tilewright::passes
