#include "passes/thread_range.h"

#include "analysis/value_at.h"

namespace tilewright::passes {

std::optional<ThreadRange> threads_where(const ir::Expr& condition, ir::VarId tx, ThreadRange here,
                                         const ir::Substitution* names) {
  analysis::Point point{{}, names};
  if (here.empty() || analysis::value_at(condition, point)) return std::nullopt;  // it says nothing of threads
  ThreadRange found{here.begin, here.begin};
  for (int64_t t = here.begin; t < here.end; ++t) {
    point.values[tx] = t;
    const auto holds = analysis::value_at(condition, point);
    if (!holds) return std::nullopt;
    if (*holds == 0) continue;
    if (found.empty()) found = {t, t};
    if (found.end != t) return std::nullopt;
    ++found.end;
  }
  return found;
}

}  // namespace tilewright::passes
