#include "codegen/cpu/brief_blocks.h"

#include <algorithm>

#include "ir/rewrite.h"
#include "passes/lower/intervals.h"

namespace tilewright::codegen {
namespace {

using namespace ir;

constexpr int64_t kBrief = 1 << 16;   // operations: a few microseconds, of vectors less
constexpr int64_t kOfFunction = 16;   // operations that a function of mathematics counts as
constexpr int64_t kUnknown = kBrief;  // as many as make a block long

int64_t operations_of(const Stmt& s) {
  int64_t count = 1;
  for_each_expr(s,
                [&](const Expr& e) { walk(e, [&](const Expr& x) { count += x.as<Intrinsic>() ? kOfFunction : 1; }); });
  return count;
}

int64_t operations_at_most(const Body& body, const passes::Intervals& ranges) {
  int64_t sum = 0;
  for (const Stmt& s : body) {
    int64_t count = kUnknown;
    if (const auto* loop = s.as<For>()) {
      const int64_t turns = ranges.of(loop->extent).high;
      if (turns < kBrief) count = turns <= 0 ? 0 : turns * operations_at_most(loop->body, ranges);
    } else if (const auto* n = s.as<If>()) {
      count = operations_of(s) + operations_at_most(n->then_body, ranges) + operations_at_most(n->else_body, ranges);
    } else if (const auto* row = s.as<Stream>()) {
      const std::optional<int64_t> elements = constant_int(row->from.extent.back());
      if (elements) count = operations_of(s) + *elements;
    } else if (s.as<Let>() || s.as<Store>() || s.as<Assume>()) {
      count = operations_of(s);
    }
    sum = std::min(kBrief, sum + count);
  }
  return sum;
}

}  // namespace

int64_t brief_blocks(const Launch& launch) {
  const auto* grid = launch.body.front().as<For>();
  const int64_t operations = std::max<int64_t>(operations_at_most(grid->body, passes::ranges_in(launch)), 1);
  return std::max<int64_t>(kBrief / operations, 1);
}

}  // namespace tilewright::codegen
