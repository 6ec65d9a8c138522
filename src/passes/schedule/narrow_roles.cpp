#include "passes/schedule/narrow_roles.h"

#include "analysis/uniformity.h"
#include "ir/effects.h"
#include "ir/rewrite.h"
#include "layout/fragment.h"
#include "passes/threads/collectives.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// What one thread begins for all, or a queue of such.
bool is_begun_by_one(const Stmt& s) {
  const auto* commit = s.as<Commit>();
  const auto* drain = s.as<Drain>();
  return s.as<Expect>() || (s.as<Copy>() && analysis::is_by_tma(*s.as<Copy>())) ||
         (commit && commit->queue == Queue::BulkStore) || (drain && drain->queue == Queue::BulkStore);
}

class NarrowRoles {
 public:
  NarrowRoles(const ProgramTables& p, const Launch& launch) : p_(p), launch_(launch), uniformity_(p, launch) {
    walk(launch.body, [&](const Stmt& s) {
      if (const auto* n = s.as<Wait>()) ++waits_[p.root(n->barrier.buffer)];
    });
  }

  Body run() const {
    return rewrite(launch_.body, [&](const Stmt& s) -> std::optional<Body> {
      const auto* role = s.as<Role>();
      if (!role || role->end - role->begin <= kWarpThreads || !uniformity_.is_uniform_control(s)) return std::nullopt;
      size_t first = 0;
      while (first < role->body.size() && role->body[first].as<SetRegisters>()) ++first;
      const auto split = role->body.begin() + static_cast<std::ptrdiff_t>(first);
      const Body work(split, role->body.end());
      if (!only_begins(work)) return std::nullopt;
      Body out;
      if (first > 0)
        out.push_back(make_stmt(Role{role->begin, role->end, Body(role->body.begin(), split)}, s->location));
      out.push_back(make_stmt(Role{role->begin, role->begin + kWarpThreads, work}, s->location));
      return out;
    });
  }

 private:
  bool only_begins(const Body& work) const {
    bool only = true, begins = false;
    std::map<BufferId, int> waits;
    walk(work, [&](const Stmt& s) {
      const bool control = s.as<For>() || s.as<If>() || s.as<Let>() || s.as<Assume>();
      if (const auto* n = s.as<Wait>()) ++waits[p_.root(n->barrier.buffer)];
      begins = begins || is_begun_by_one(s);
      only = only && (control || s.as<Wait>() || is_begun_by_one(s)) && uniformity_.is_uniform_control(s);
      for_each_expr(s, [&](const Expr& e) { only = only && uniformity_.is_uniform(e, s); });
    });
    return only && begins &&
           std::all_of(waits.begin(), waits.end(), [&](const auto& w) { return waits_.at(w.first) == w.second; });
  }

  const ProgramTables& p_;
  const Launch& launch_;
  const analysis::Uniformity uniformity_;
  std::map<BufferId, int> waits_;  // of the launch
};

}  // namespace

Body narrow_roles(const ProgramTables& program, const Launch& launch) { return NarrowRoles(program, launch).run(); }

}  // namespace tilewright::passes
