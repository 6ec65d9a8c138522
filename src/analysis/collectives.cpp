#include "analysis/collectives.h"

#include "analysis/uniformity.h"
#include "ir/effects.h"
#include "ir/number_statements.h"
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
  Search(const TileProgram& program, const Launch& launch) : program_(program), threads_(program, launch) {}

  // `branch`: the innermost enclosing statement that divides the threads, if any.
  void body(const Body& list, const Stmt* branch) {
    for (const Stmt& stmt : list) {
      if (threads_.control(stmt) < who_comes(stmt) && !threads_.in_map(stmt)) report(stmt, branch);
      if (stmt.as<Map>()) continue;  // thread code
      const Stmt* below = stmt.as<Role>() ? nullptr : divides(stmt) ? &stmt : branch;
      for_each_body(stmt, [&](const Body& inner) { body(inner, below); });
    }
  }

  std::vector<Diagnostic> findings;

 private:
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
                        "move it out of the branch, or branch on whole warps, as in if tx < 64", std::move(notes)));
  }

  const TileProgram& program_;
  Uniformity threads_;
};

}  // namespace

std::vector<Diagnostic> check_collectives(const TileProgram& program) {
  std::vector<Diagnostic> findings;
  for (const Launch& each : program.launches) {
    const Launch launch = numbered(each);
    Search search(program, launch);
    search.body(launch.body, nullptr);
    findings.insert(findings.end(), search.findings.begin(), search.findings.end());
  }
  return findings;
}

}  // namespace tilewright::analysis
