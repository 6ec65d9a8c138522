#include "passes/lower/hazards.h"

#include "analysis/body_order.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// The one thread that goes into the branch, by a condition that names it. Null: there may be several.
Expr one_thread(const Expr& condition, const Launch& launch) {
  std::vector<Expr> all{condition}, named;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto* n = all[i].as<Binary>();
    if (n && n->op == BinaryOp::And) all.insert(all.end(), {n->a, n->b});
  }
  for (size_t d = 0; d < launch.thread.size(); ++d)
    for (const Expr& e : all) {
      const auto* n = e.as<Binary>();
      const auto* v = n && n->op == BinaryOp::Eq && constant_int(n->b) ? n->a.as<Var>() : nullptr;
      if (launch.threads[d] != 1 && v && v->id == launch.thread[d]) named.push_back(e);
    }
  const auto wanted = std::count_if(launch.threads.begin(), launch.threads.end(), [](int64_t n) { return n != 1; });
  if (named.empty() || static_cast<int64_t>(named.size()) != wanted) return {};
  Expr out = named[0];
  for (size_t i = 1; i < named.size(); ++i) out = logical_and(out, named[i]);
  return out;
}

}  // namespace

Hazards::Hazards(const ProgramTables& program, const Launch& launch)
    : program_(program), launch_(launch), own_(launch) {}

void Hazards::collect(const Stmt& s, const Expr& one, std::vector<Access>& out) const {
  for (const Effect& e : effects_of(s).list) {
    if (e.access == ir::Access::Order || !e.region.valid()) continue;
    if (program_.buffer(program_.root(e.region.buffer)).space == Space::Local) continue;
    const bool element =
        std::all_of(e.region.extent.begin(), e.region.extent.end(), [](const Expr& x) { return constant_int(x) == 1; });
    Access a{e.region.buffer, e.access != ir::Access::Read};
    if (element) a.own = own_.of(e.region.min);
    const auto* atomic = s.as<Atomic>();
    if (!atomic || !atomic->result.valid()) a.update = e.update;
    a.one = one;
    a.in_flight = a.write && e.completion.queue == Queue::CpAsync;
    out.push_back(std::move(a));
  }
  const auto* branch = s.as<If>();
  const Expr inner_one = !one && branch ? one_thread(branch->condition, launch_) : one;
  for_each_body(s, [&](const Body& b) {
    const bool is_else = branch && &b == &branch->else_body;
    for (const Stmt& inner : b) collect(inner, is_else ? one : inner_one, out);
  });
}

bool Hazards::clash(const Access& a, const Access& b) const {
  if (!(a.write || b.write) || !analysis::may_overlap(a.buffer, b.buffer, program_)) return false;
  if (ir::commute(a.update, b.update) && program_.buffer(a.buffer).type == program_.buffer(b.buffer).type) return false;
  if (a.in_flight && b.in_flight) return false;
  if (a.one && b.one && equal(a.one, b.one)) return false;
  return !(a.buffer == b.buffer && a.own && a.own == b.own);
}

void Hazards::add(const Stmt& s) { collect(s, {}, run_); }

bool Hazards::conflicts(const Stmt& s) const {
  std::vector<Access> mine;
  collect(s, {}, mine);
  return std::any_of(mine.begin(), mine.end(), [&](const Access& a) {
    return std::any_of(run_.begin(), run_.end(), [&](const Access& b) { return clash(a, b); });
  });
}

bool Hazards::inside(const Stmt& s) const {
  if (s.as<Store>() || s.as<Let>()) return false;
  const bool again = s.as<For>() || s.as<While>();
  std::vector<Access> mine;
  collect(s, {}, mine);
  for (size_t i = 0; i < mine.size(); ++i)
    for (size_t j = 0; j < i + (again ? 1 : 0); ++j)
      if (clash(mine[i], mine[j])) return true;
  return false;
}

}  // namespace tilewright::passes
