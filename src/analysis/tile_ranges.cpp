#include "analysis/tile_ranges.h"

#include "analysis/sure_walk.h"
#include "ir/operators.h"
#include "ir/rewrite.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

class TileRanges : public SureWalk {
 public:
  using SureWalk::SureWalk;
  std::set<BufferId> left;

 protected:
  void visit(const Stmt& s) override {
    if (uncertain_ || s.as<Assume>() || s.as<Assert>()) return;
    for_each_load(s, [&](const Load& load) { element(s, load.buffer, load.indices); });
    if (const auto* op = s.as<Store>()) element(s, op->to.buffer, op->to.indices);
    if (const auto* op = s.as<Atomic>()) element(s, op->to.buffer, op->to.indices);
    if (is_tile_op(s)) for_each_region(s, [&](const Region& r) { region(s, r); });
  }

 private:
  void element(const Stmt& s, BufferId id, const std::vector<Expr>& indices) {
    const Buffer& b = program_.buffer(id);
    if (!is_tile(b)) return;
    for (size_t d = 0; d < indices.size(); ++d) index(s, id, d, indices[d], constant(indices[d]->type, int64_t{1}));
  }
  void region(const Stmt& s, const Region& r) {
    if (!is_tile(program_.buffer(r.buffer))) return;
    // What has no elements touches none.
    const bool some =
        std::all_of(r.extent.begin(), r.extent.end(), [](const Expr& e) { return constant_int(e).value_or(0) > 0; });
    for (size_t d = 0; some && d < r.min.size(); ++d) index(s, r.buffer, d, r.min[d], r.extent[d]);
  }
  static bool is_tile(const Buffer& b) {
    return b.space == Space::Shared || b.space == Space::Fragment || b.space == Space::Local;
  }

  // What is there of the indices min, ..., min + extent - 1 over the corners.
  struct Range {
    int64_t low = INT64_MAX, high = INT64_MIN;
    bool leaves(int64_t size) const { return low <= high && (low < 0 || high >= size); }
  };
  Range range_of(const Expr& min, int64_t extent, const std::vector<VarId>& vars, bool guarded) const {
    Range out;
    for_each_corner(vars, [&](const Point& point) {
      if (guarded && !holds(point)) return true;
      const auto value = index_at(min, point);
      if (value && *value > -(int64_t{1} << 40) && *value < int64_t{1} << 40)
        out.low = std::min(out.low, *value), out.high = std::max(out.high, *value + extent - 1);
      return value.has_value();
    });
    return out;
  }

  void index(const Stmt& s, BufferId id, size_t d, const Expr& min, const Expr& extent) {
    const Buffer& b = program_.buffer(id);
    const auto size = d < b.shape.size() ? constant_int(b.shape[d]) : std::nullopt;
    const auto wide = constant_int(extent);
    if (!size || !wide) return;
    std::vector<VarId> vars;
    add_variables(min, vars);
    Range range = range_of(min, *wide, vars, false);
    if (!range.leaves(*size)) return;
    if (!guards_.empty()) {
      for (const Guard& g : guards_) add_variables(g.condition, vars);
      range = range_of(min, *wide, vars, true);
      if (!range.leaves(*size)) return;
    }
    left.insert(id);
    if (!said_.insert({&*s, id}).second) return;
    const std::string is = range.low == range.high ? fmt::format("is {}", range.low)
                                                   : fmt::format("runs from {} to {}", range.low, range.high);
    const std::string has = b.rank() == 1 ? fmt::format("'{}' has", b.name) : fmt::format("dimension {} has", d);
    report(Code::IndexOutOfBounds, s, id,
           fmt::format("index {} of '{}' {}, but {} {} elements", d, b.name, is, has, *size),
           "make the loop shorter or the tile larger, or guard the access by an if");
  }

  std::set<std::pair<const StmtNode*, BufferId>> said_;
};

}  // namespace

std::vector<Diagnostic> check_tile_ranges(const TileProgram& program) {
  std::vector<Diagnostic> findings;
  for (const Launch& launch : program.launches) {
    TileRanges walk(program, launch);
    walk.run();
    findings.insert(findings.end(), walk.findings.begin(), walk.findings.end());
  }
  return findings;
}

std::set<BufferId> tiles_surely_left(const TileProgram& program) {
  std::set<BufferId> left;
  for (const Launch& launch : program.launches) {
    TileRanges walk(program, launch);
    walk.run();
    left.merge(walk.left);
  }
  return left;
}

}  // namespace tilewright::analysis
