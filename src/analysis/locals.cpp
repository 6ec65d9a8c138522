#include "analysis/locals.h"

#include "ir/effects.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// The storage that each body in it uses.
std::vector<std::set<BufferId>> used_within(const Stmt& s, const ProgramTables& p) {
  std::vector<std::set<BufferId>> out;
  for_each_body(s, [&](const Body& inner) { out.push_back(used_roots(inner, p)); });
  return out;
}

// Are all its uses in bodies of the statement? Two bodies of an If are two versions of one box, each with a buffer of
// its own.
bool lives_within(const Stmt& s, const ProgramTables& p, BufferId id, const std::vector<std::set<BufferId>>& bodies) {
  bool out = std::any_of(bodies.begin(), bodies.end(), [&](const auto& used) { return used.contains(id); });
  for_each_expr(s, [&](const Expr& e) {
    walk(e, [&](const Expr& x) {
      const auto* n = x.as<Load>();
      out = out && !(n && p.root(n->buffer) == id);
    });
  });
  return out;
}

}  // namespace

std::set<BufferId> locals_of(const Body& body, const ProgramTables& program, const std::set<BufferId>& declared) {
  std::map<BufferId, std::vector<const Stmt*>> users;
  for (const Stmt& s : body)
    for (BufferId id : used_roots({s}, program))
      if (program.buffer(id).space == Space::Local && !declared.contains(id)) users[id].push_back(&s);
  std::set<BufferId> out;
  std::map<const Stmt*, std::vector<std::set<BufferId>>> within;
  for (const auto& [id, statements] : users) {
    const Stmt* only = statements.front();
    const bool is_only = statements.size() == 1;
    if (is_only && !within.contains(only)) within[only] = used_within(*only, program);
    if (!is_only || !lives_within(*only, program, id, within[only])) out.insert(id);
  }
  return out;
}

}  // namespace tilewright::analysis
