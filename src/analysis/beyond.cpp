#include "analysis/beyond.h"

#include "analysis/divisibility.h"
#include "analysis/panels.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

constexpr int64_t kSwizzledRows = 8;         // a box begins at a row that is a multiple of them
constexpr int64_t kRowsOfPiece[] = {16, 8};  // where the extent is a multiple: few rows too many, few copies
constexpr int64_t kWorthOneOf = 4;           // of a box, so large a part beyond

struct Bounds {
  int64_t least, most;
};
// Of a sum of the launch's block indices.
std::optional<Bounds> bounds_of(const Expr& e, const Launch& launch) {
  if (const auto value = constant_int(e)) return Bounds{*value, *value};
  if (const auto* v = e.as<Var>()) {
    const auto found = std::ranges::find(launch.block, v->id);
    if (found == launch.block.end()) return std::nullopt;
    const auto blocks = constant_int(launch.grid[static_cast<size_t>(found - launch.block.begin())]);
    return blocks ? std::optional(Bounds{0, *blocks - 1}) : std::nullopt;
  }
  if (const auto* c = e.as<Cast>(); c && c->value->type.is_int()) return bounds_of(c->value, launch);
  const auto* s = e.as<ir::Sum>();
  if (!s) return std::nullopt;
  Bounds all{s->constant, s->constant};
  for (const Term& t : s->terms) {
    const auto value = bounds_of(t.value, launch);
    if (!value) return std::nullopt;
    const int64_t one = t.coefficient * value->least, other = t.coefficient * value->most;
    all.least += std::min(one, other), all.most += std::max(one, other);
  }
  return all;
}

class Search {
 public:
  Search(const Copy& load, const For& loop, const Launch& launch, const ProgramTables& p)
      : load_(load), launch_(launch), p_(p), tensor_(p.buffer(load.from.buffer)), changing_(bound_vars(loop.body)) {
    changing_.insert(loop.var);
  }

  std::optional<Beyond> run() const {
    const size_t rank = load_.from.extent.size();
    if (load_.im2col.present() || load_.to.extent.size() < 2) return std::nullopt;
    // Rows lie along one dimension, the others before the last have one element.
    for (size_t d = 0; d < rank; ++d) {
      const int64_t extent = constant_int(load_.from.extent[d]).value_or(1);
      if (extent <= 1 || !begins_alike(load_.from.min[d])) continue;
      const auto found = d + 1 == rank ? by_panels(d, extent) : by_rows(d, extent);
      if (found && is_worth(*found, extent)) return found;
    }
    return std::nullopt;
  }

 private:
  bool begins_alike(const Expr& min) const {
    bool alike = std::ranges::none_of(used_vars(min), [&](VarId v) { return changing_.contains(v); });
    walk(min, [&](const Expr& x) { alike = alike && !x.as<Load>(); });
    return alike;
  }
  std::optional<Beyond> by_rows(size_t dim, int64_t extent) const {
    const auto end = constant_int(tensor_.shape[dim]);
    const auto begin = bounds_of(load_.from.min[dim], launch_);
    // What is known is one box.
    if (end && begin && begin->least == begin->most) {
      const int64_t inside = std::clamp(*end - begin->least, int64_t{1}, extent);
      const int64_t piece = (inside + kSwizzledRows - 1) / kSwizzledRows * kSwizzledRows;
      return piece < extent ? std::optional(Beyond{dim, false, piece, 1, true}) : std::nullopt;
    }
    // The last box of those that lie side by side has what is left, one piece; the others have more.
    if (const auto first = begins_at_multiples_of(extent, load_.from.min[dim]); end && first) {
      const int64_t left = ((*end - *first) % extent + extent) % extent;
      const int64_t piece = left == 0 ? extent : (left + kSwizzledRows - 1) / kSwizzledRows * kSwizzledRows;
      return Beyond{dim, false, piece, piece < extent ? 2 : 1};
    }
    for (const int64_t piece : kRowsOfPiece)
      if (extent % piece == 0) return Beyond{dim, false, piece, extent / piece};
    return std::nullopt;
  }
  // The place of the first box, where the others are whole boxes away.
  static std::optional<int64_t> begins_at_multiples_of(int64_t extent, const Expr& begin) {
    if (const auto* c = begin.as<Cast>(); c && c->value->type.is_int()) return begins_at_multiples_of(extent, c->value);
    const auto* s = begin.as<ir::Sum>();
    if (!s || !std::ranges::all_of(s->terms, [&](const Term& t) { return t.coefficient % extent == 0; }))
      return std::nullopt;
    return s->constant;
  }
  std::optional<Beyond> by_panels(size_t dim, int64_t extent) const {
    const int64_t panel = box_columns(p_, load_.to.buffer);
    if (panel == 0 || extent <= panel) return std::nullopt;
    return Beyond{dim, true, panel, (extent + panel - 1) / panel};
  }
  bool is_worth(const Beyond& found, int64_t extent) const {
    const Expr &end = tensor_.shape[found.dim], &begin = load_.from.min[found.dim];
    if (power_of_two_divisor(end, p_) % extent == 0 && power_of_two_divisor(begin, p_) % extent == 0) return false;
    const auto elements = constant_int(end);
    const auto begins = bounds_of(begin, launch_);
    if (!elements || !begins) return true;
    // In the last of the boxes.
    const int64_t beyond = begins->most + extent - *elements;
    return beyond >= extent / kWorthOneOf && found.leaves_some(extent - beyond);
  }

  const Copy& load_;
  const Launch& launch_;
  const ProgramTables& p_;
  const Buffer& tensor_;
  std::set<VarId> changing_;  // by the loop's turns
};

}  // namespace

Expr Beyond::inside(const Copy& copy, const ProgramTables& program) const {
  if (is_known) return constant(i32, pieces);
  const Expr end = cast(program.buffer(copy.from.buffer).shape[dim], i64), begin = cast(copy.from.min[dim], i64);
  const Expr zero = constant(i64, int64_t{0}), all = constant(i64, pieces);
  const Expr found = ceildiv(sub(end, begin), constant(i64, piece));
  return cast(binary(BinaryOp::Min, binary(BinaryOp::Max, found, zero), all), i32);
}

std::optional<Beyond> beyond_its_tensor(const Copy& load, const For& loop, const Launch& launch,
                                        const ProgramTables& program) {
  return Search(load, loop, launch, program).run();
}

}  // namespace tilewright::analysis
