#include "passes/lower/hazards.h"

#include "analysis/thread_index.h"
#include "ir/rewrite.h"

namespace tilewright::passes {

using namespace ir;

Hazards::Hazards(const ProgramTables& program, const Launch& launch)
    : program_(program), launch_(launch), bound_(bound_vars(launch.body)) {}

bool Hazards::on_chip(BufferId id) const {
  const Space space = program_.buffer(program_.root(id)).space;
  return space == Space::Shared || space == Space::Fragment;
}

std::vector<Region> Hazards::regions(const Stmt& s) const {
  if (const auto* n = s.as<Copy>()) return {n->from, n->to};
  if (const auto* n = s.as<Fill>()) return {n->to};
  if (const auto* n = s.as<Gemm>())
    return n->is_sparse() ? std::vector<Region>{n->a, n->metadata, n->b, n->c} : std::vector<Region>{n->a, n->b, n->c};
  if (const auto* n = s.as<Reduce>()) return {n->from, n->to};
  if (const auto* n = s.as<Scan>()) return {n->from, n->to};
  return {};
}

void Hazards::collect(const Expr& e, std::vector<Access>& out) const {
  walk(e, [&](const Expr& x) {
    if (const auto* n = x.as<Load>(); n && on_chip(n->buffer)) out.push_back({n->buffer, n->indices, false, false});
  });
}

void Hazards::collect(const Stmt& s, std::vector<Access>& out) const {
  for_each_expr(s, [&](const Expr& e) { collect(e, out); });
  if (const auto* n = s.as<Store>(); n && on_chip(n->to.buffer))
    out.push_back({n->to.buffer, n->to.indices, true, false});
  if (const auto* n = s.as<Atomic>(); n && on_chip(n->to.buffer))
    out.push_back({n->to.buffer, n->to.indices, true, !n->result.valid()});
  for (const Region& r : regions(s))
    if (on_chip(r.buffer)) out.push_back({r.buffer, {}, true, false});
  for_each_body(s, [&](const Body& b) {
    for (const Stmt& inner : b) collect(inner, out);
  });
}

bool Hazards::clash(const Access& a, const Access& b) const {
  if (!(a.write || b.write) || (a.atomic && b.atomic)) return false;
  if (program_.root(a.buffer) != program_.root(b.buffer)) return false;
  return !(a.buffer == b.buffer && equal(a.index, b.index) && analysis::is_own_element(a.index, launch_, bound_));
}

void Hazards::add(const Stmt& s) { collect(s, run_); }

bool Hazards::conflicts(const Stmt& s) const {
  std::vector<Access> mine;
  collect(s, mine);
  return std::any_of(mine.begin(), mine.end(), [&](const Access& a) {
    return std::any_of(run_.begin(), run_.end(), [&](const Access& b) { return clash(a, b); });
  });
}

bool Hazards::inside(const Stmt& s) const {
  if (s.as<Store>() || s.as<Let>()) return false;
  std::vector<Access> mine;
  collect(s, mine);
  for (size_t i = 0; i < mine.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (clash(mine[i], mine[j]) && !(mine[i].write && mine[j].write)) return true;
  return false;
}

}  // namespace tilewright::passes
