#include "passes/meet_beside_roles.h"

#include "analysis/uniformity.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/hazards.h"
#include "passes/lower/lowering.h"
#include "passes/role_groups.h"

namespace tilewright::passes {

using namespace ir;

namespace {

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
    if (const auto* n = s.as<For>();
        n && uniformity_.is_uniform(n->begin, s) && uniformity_.is_uniform(n->extent, s) && !may_jump(n->body)) {
      return loop(*n, s->location, out);
    }
    together({s}, 0, 1, out);
  }
  // An iteration begins as the loop does or as the one before ends.
  void loop(For f, LocationId at, Body& out) {
    const Body before = run_;
    body(f.body);
    Body either = before;
    either.insert(either.end(), run_.begin(), run_.end());
    begin_with(std::move(either));
    f.body = body(f.body);
    if (constant_int(f.extent).value_or(0) <= 0)
      for (const Stmt& s : before) note(s);
    out.push_back(make_stmt(std::move(f), at));
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
  Body run_;  // since all threads last met
};

}  // namespace

void meet_beside_roles(const ProgramTables& program, Launch& launch) {
  bool roles = false, all_come = true;
  walk(launch.body, [&](const Stmt& s) {
    const auto* role = s.as<Role>();
    roles = roles || (role && (role->begin > 0 || role->end < launch.thread_count()));
    all_come = all_come && !s.as<Return>();
  });
  if (roles && all_come) launch.body = MeetBesideRoles(program, launch).body(launch.body);
}

}  // namespace tilewright::passes
