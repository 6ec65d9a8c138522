#include "analysis/collectives.h"

#include "analysis/slope.h"
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
  Search(const TileProgram& program, const Launch& launch)
      : program_(program), launch_(launch), threads_(program, launch) {}

  // `branch`: the innermost enclosing statement that divides the threads, if any.
  void body(const Body& list, const Stmt* branch) {
    for (const Stmt& stmt : list) {
      if (threads_.control(stmt) < who_comes(stmt) && !threads_.in_map(stmt)) report(stmt, branch);
      if (stmt.as<Map>()) continue;  // thread code
      if ((stmt.as<Copy>() || stmt.as<Fill>()) && !threads_.in_map(stmt)) operands(stmt);
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

  // A tile is moved or filled by all threads together, each a part of it: an operand that rises with the number of the
  // thread is another one for each. What a thread has to itself is its own.
  void operands(const Stmt& stmt) {
    for (const Effect& e : effects_of(stmt).list)
      if (e.region.valid() && program_.buffer(program_.root(e.region.buffer)).space == Space::Local) return;
    const ThreadSet& set = threads_.executing_set(stmt);
    bool differs = false;
    for_each_expr(stmt, [&](const Expr& e) {
      for (size_t d = 0; d < launch_.thread.size(); ++d)
        differs = differs || (set.end[d] - set.begin[d] > 1 && slope(e, launch_.thread[d]).value_or(0) != 0);
    });
    if (!differs) return;
    findings.push_back(make_diagnostic(
        Code::OperandsDisagree, program_.location(stmt->location),
        fmt::format("{} is done by all threads together, but an operand differs between them", name_of(stmt)),
        "make it the same for all threads; what one thread moves by itself is a loop: for i in T.serial(n)", {}));
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
  const Launch& launch_;
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
