#include "analysis/collectives.h"

#include "analysis/thread_index.h"
#include "analysis/tma.h"
#include "analysis/value_at.h"
#include "ir/cluster.h"
#include "ir/effects.h"
#include "ir/number_statements.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "support/diagnostic.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// Who must come to the statement together. Barriers of some threads are in the hands of who writes them.
Agreement who_comes(const Stmt& stmt) {
  const auto* sync = stmt.as<Sync>();
  if (sync && sync->scope == SyncScope::Named) return Agreement::None;
  if (const auto* arrive = stmt.as<Arrive>(); arrive && arrive->by == ArriveBy::Warp) return Agreement::Warp;
  return effects_of(stmt).scope == Scope::Collective ? Agreement::All : Agreement::None;
}

class Search {
 public:
  Search(const TileProgram& program, const Launch& launch)
      : program_(program), launch_(launch), threads_(program, launch), names_(names_in(launch.body)) {}

  // What encloses a body: the innermost statement that divides the threads, if any; the threads of the role; whether
  // branches let one of these by alone.
  struct Place {
    const Stmt* branch = nullptr;
    OwnElements::Range threads;
    bool of_one = false;
  };
  void launch() { body(launch_.body, {nullptr, {0, launch_.thread_count()}}); }

  std::vector<Diagnostic> findings;

 private:
  void body(const Body& list, const Place& at) {
    for (const Stmt& stmt : list) {
      if (threads_.control(stmt) < who_comes(stmt) && !threads_.in_map(stmt) && !(at.of_one && asks_alone(stmt)))
        report(stmt, at.branch);
      if (stmt.as<Map>()) continue;  // thread code
      Place below = at;
      const auto* role = stmt.as<Role>();
      if (role) below = {nullptr, {role->begin, role->end}};
      if (!role && divides(stmt)) below.branch = &stmt;
      const auto* branch = stmt.as<If>();
      for_each_body(stmt, [&](const Body& inner) {
        Place there = below;
        if (branch && below.branch == &stmt) there.of_one = at.of_one || lets_one_by(*branch, inner, at.threads);
        body(inner, there);
      });
    }
  }
  bool lets_one_by(const If& branch, const Body& side, OwnElements::Range threads) const {
    const bool is_then = &side == &branch.then_body;
    return only_thread(is_then ? branch.condition : logical_not(branch.condition), launch_, threads, &names_)
        .has_value();
  }
  // TMA takes one thread's word for a copy; to another block of the cluster all threads write.
  bool asks_alone(const Stmt& stmt) const {
    const auto* copy = stmt.as<Copy>();
    return copy && is_by_tma(*copy) && !is_to_peer(program_, *copy);
  }

  bool divides(const Stmt& stmt) const {
    const auto agrees = [&](const Expr& e) { return threads_.is_uniform(e, stmt); };
    if (const auto* branch = stmt.as<If>()) return !agrees(branch->condition);
    if (const auto* loop = stmt.as<While>()) return !agrees(loop->condition);
    if (const auto* loop = stmt.as<For>()) return !agrees(loop->begin) || !agrees(loop->extent);
    return false;
  }

  void report(const Stmt& stmt, const Stmt* branch) {
    std::vector<Note> notes;
    if (branch)
      notes.push_back({fmt::format("not all threads take the same way here, by {}", name_of(*branch)),
                       program_.location((*branch)->location)});
    else
      notes.push_back({"some threads may have left before, by break, continue or return", {}});
    findings.push_back(
        make_diagnostic(Code::VerifyCollective, program_.location(stmt->location),
                        fmt::format("{} is done by all threads{} together, but not all of them may come here",
                                    name_of(stmt), who_comes(stmt) == Agreement::Warp ? " of a warp" : ""),
                        asks_alone(stmt) ? "move it out of the branch, or let one thread by, as in if tx == 0"
                                         : "move it out of the branch, or branch on whole warps, as in if tx < 64",
                        std::move(notes)));
  }

  const TileProgram& program_;
  const Launch& launch_;
  Uniformity threads_;
  const Substitution names_;
};

}  // namespace

std::vector<Diagnostic> check_collectives(const TileProgram& program) {
  std::vector<Diagnostic> findings;
  for (const Launch& each : program.launches) {
    const Launch launch = numbered(each);
    Search search(program, launch);
    search.launch();
    findings.insert(findings.end(), search.findings.begin(), search.findings.end());
  }
  return findings;
}

bool is_of_one_thread(const Stmt& stmt, const Uniformity& threads) {
  const auto* copy = stmt.as<Copy>();
  return copy && is_by_tma(*copy) && !threads.is_uniform_control(stmt);
}

}  // namespace tilewright::analysis
