#include "passes/lower/hazards.h"

#include "analysis/body_order.h"
#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

Hazards::Hazards(const ProgramTables& program, const Launch& launch)
    : program_(program), launch_(launch), own_(launch) {}

void Hazards::collect(const Stmt& s, std::optional<int64_t> one, std::vector<Access>& out) const {
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
  const auto inner_one =
      !one && branch ? analysis::only_thread(branch->condition, launch_, {0, launch_.thread_count()}) : one;
  for_each_body(s, [&](const Body& b) {
    const bool is_else = branch && &b == &branch->else_body;
    for (const Stmt& inner : b) collect(inner, is_else ? one : inner_one, out);
  });
}

bool Hazards::clash(const Access& a, const Access& b) const {
  if (!(a.write || b.write) || !analysis::may_overlap(a.buffer, b.buffer, program_)) return false;
  if (ir::commute(a.update, b.update) && program_.buffer(a.buffer).type == program_.buffer(b.buffer).type) return false;
  if (a.in_flight && b.in_flight) return false;
  if (a.one && a.one == b.one) return false;
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
