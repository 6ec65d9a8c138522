// Threads of a block that lie side by side, and conditions that choose them.
#pragma once
#include "ir/rewrite.h"

namespace tilewright::passes {

struct ThreadRange {
  int64_t begin, end;
  bool empty() const { return begin >= end; }
  ThreadRange both(ThreadRange o) const { return {std::max(begin, o.begin), std::min(end, o.end)}; }
  std::optional<ThreadRange> either(ThreadRange o) const {
    if (empty() || o.empty()) return empty() ? o : *this;
    if (begin > o.end || o.begin > end) return std::nullopt;
    return ThreadRange{std::min(begin, o.begin), std::max(end, o.end)};
  }
  // What it leaves of a range that holds it, if that is one range.
  std::optional<ThreadRange> rest_of(ThreadRange all) const {
    if (empty()) return all;
    if (begin == all.begin) return ThreadRange{end, all.end};
    return end == all.end ? std::optional(ThreadRange{all.begin, begin}) : std::nullopt;
  }
};

// The threads of `here` for which a condition holds, if the thread's index alone decides and they are one range. `tx`
// is the thread variable.
std::optional<ThreadRange> threads_where(const ir::Expr& condition, ir::VarId tx, ThreadRange here,
                                         const ir::Substitution* names = nullptr);

}  // namespace tilewright::passes
