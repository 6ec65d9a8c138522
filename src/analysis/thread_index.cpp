#include "analysis/thread_index.h"

#include <algorithm>

#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

bool is_own_element(const std::vector<Expr>& index, const Launch& launch, const std::set<VarId>& bound) {
  for (size_t d = 0; d < launch.thread.size(); ++d) {
    if (launch.threads[d] == 1) continue;
    const VarId thread = launch.thread[d];
    const bool found = std::any_of(index.begin(), index.end(), [&](const Expr& e) {
      std::vector<Term> terms{{1, e}};
      if (const auto* s = e.as<Sum>()) terms = s->terms;
      bool own = false;
      for (const Term& t : terms) {
        if (const auto* v = t.value.as<Var>(); v && v->id == thread) {
          own = true;
          continue;
        }
        bool uniform = true;
        walk(t.value, [&](const Expr& x) {
          const auto* v = x.as<Var>();
          const bool of_thread =
              v && std::find(launch.thread.begin(), launch.thread.end(), v->id) != launch.thread.end();
          uniform = uniform && !x.as<Load>() && !of_thread && !(v && bound.contains(v->id));
        });
        if (!uniform) return false;
      }
      return own;
    });
    if (!found) return false;
  }
  return true;
}

}  // namespace tilewright::analysis
