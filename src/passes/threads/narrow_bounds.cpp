#include "passes/threads/narrow_bounds.h"

#include <limits>

#include "ir/extent.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

using namespace ir;

namespace {

constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostApart = int64_t{1} << 30;  // of a place and its last point
constexpr int64_t kFewestPoints = 5;              // that pay for a place in 32 bits, in instructions

class Bounds {
 public:
  Bounds(const Launch& launch, const Intervals& ranges) : ranges_(ranges) {
    walk(launch.body, [&](const Stmt& s) {
      const auto* n = s.as<For>();
      const auto extent = n && n->kind == LoopKind::Unroll ? constant_int(n->extent) : std::nullopt;
      if (extent) unrolled_[n->var] = *extent;
    });
  }

  std::optional<Expr> narrowed(const Expr& e) const {
    if (!is(e, BinaryOp::And)) return std::nullopt;
    std::vector<Expr> parts;
    for_each_conjunct(e, [&](const Expr& part) { parts.push_back(part); });
    for (size_t low = 0; low < parts.size(); ++low) {
      const auto* least = parts[low].as<Binary>();
      if (!least || least->op != BinaryOp::Le || least->b->type != i64 || constant_int(least->a) != 0) continue;
      for (size_t high = 0; high < parts.size(); ++high) {
        const auto* most = parts[high].as<Binary>();
        if (!most || most->op != BinaryOp::Lt || !equal(most->a, least->b) || !is_extent(most->b)) continue;
        parts[std::min(low, high)] = inside(least->b, most->b);
        parts.erase(parts.begin() + static_cast<ptrdiff_t>(std::max(low, high)));
        Expr out = parts[0];
        for (size_t i = 1; i < parts.size(); ++i) out = logical_and(out, parts[i]);
        return narrowed(out).value_or(out);
      }
    }
    return std::nullopt;
  }

 private:
  static bool is(const Expr& e, BinaryOp op) { return e.as<Binary>() && e.as<Binary>()->op == op; }
  bool is_extent(const Expr& e) const {
    const Interval range = ranges_.of(e);
    return range.low >= 0 && range.high <= kMost;
  }

  Expr inside(const Expr& index, const Expr& extent) const {
    if (const auto point = point_of(index)) {
      const Expr least = constant(i64, -kMostApart), most = constant(i64, kMost);
      const Expr place = binary(BinaryOp::Min, binary(BinaryOp::Max, point->place, least), most);
      return binary(BinaryOp::Lt, add(cast(place, u32), cast(point->from_there, u32)), cast(extent, u32));
    }
    return binary(BinaryOp::Lt, cast(index, u64), cast(extent, u64));
  }

  // An index as a place that many points of unrolled loops have in common, and how far each is from there.
  struct Point {
    Expr place, from_there;
  };
  std::optional<Point> point_of(const Expr& index) const {
    const auto* n = index.as<Sum>();
    if (!n) return std::nullopt;
    Sum place, own;
    place.constant = n->constant;
    int64_t points = 1;
    std::set<VarId> counted;
    for (const Term& t : n->terms) {
      const std::set<VarId> used = used_vars(t.value);
      const bool varies = !used.empty() && std::ranges::all_of(used, [&](VarId v) { return unrolled_.contains(v); });
      (varies ? own : place).terms.push_back(t);
      for (VarId v : varies ? used : std::set<VarId>{})
        if (counted.insert(v).second) points *= unrolled_.at(v);
    }
    if (points < kFewestPoints || place.terms.empty()) return std::nullopt;
    const Point out{sum(place.terms, place.constant, i64), sum(own.terms, 0, i64)};
    const Interval there = ranges_.of(out.place), from = ranges_.of(out.from_there);
    const bool exact = there.low > -kUnbounded / 2 && there.high < kUnbounded / 2;
    if (!exact || from.low < 0 || from.high >= kMostApart) return std::nullopt;
    return out;
  }

  const Intervals& ranges_;
  std::map<VarId, int64_t> unrolled_;
};

}  // namespace

void narrow_bounds(ThreadProgram& program) {
  const Intervals symbols = ranges_of_symbols(program);
  for (Launch& launch : program.launches) {
    const Intervals ranges = ranges_in(launch, symbols);
    const Bounds bounds(launch, ranges);
    launch.body = rewrite_exprs(launch.body, [&](const Expr& e) { return bounds.narrowed(e); });
  }
}

}  // namespace tilewright::passes
