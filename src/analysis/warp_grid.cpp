#include "analysis/warp_grid.h"

#include <fmt/format.h>

#include "analysis/divisibility.h"
#include "analysis/panels.h"
#include "ir/operators.h"

namespace tilewright::analysis {

using namespace ir;

namespace {

// Of two grids that give a warp as many tiles the one with the higher score is better.
double score_of(GemmPolicy policy, const WarpGrid& grid, double rows, double columns, bool rows_first) {
  if (policy == GemmPolicy::FullCol) return static_cast<double>(grid.n);
  if (policy == GemmPolicy::FullRow || rows_first) return static_cast<double>(grid.m);
  return std::min(rows / columns, columns / rows);
}

}  // namespace

std::optional<WarpGrid> divide_warps(GemmPolicy policy, int64_t m, int64_t n, int64_t warps, int64_t unit_m,
                                     int64_t unit_n, bool rows_first) {
  std::optional<WarpGrid> best;
  double most = 0;
  for (int64_t wm = 1; wm <= warps; ++wm) {
    const int64_t wn = warps / wm;
    if (wm * wn != warps || m % (unit_m * wm) != 0 || n % (unit_n * wn) != 0) continue;
    const double score =
        score_of(policy, {wm, wn}, static_cast<double>(m / wm), static_cast<double>(n / wn), rows_first);
    if (best && score <= most) continue;
    best = WarpGrid{wm, wn}, most = score;
  }
  return best;
}

WarpGrid cover_with_warps(GemmPolicy policy, int64_t m, int64_t n, int64_t warps, int64_t unit_m, int64_t unit_n) {
  WarpGrid best;
  int64_t fewest = 0;
  double most = 0;
  for (int64_t wm = 1; wm <= warps; ++wm) {
    const int64_t wn = warps / wm;
    if (wm * wn != warps) continue;
    const int64_t down = ceil_div(m, unit_m * wm), across = ceil_div(n, unit_n * wn);
    const double score =
        score_of(policy, {wm, wn}, static_cast<double>(down * unit_m), static_cast<double>(across * unit_n), false);
    if (fewest != 0 && (down * across > fewest || (down * across == fewest && score <= most))) continue;
    best = WarpGrid{wm, wn}, fewest = down * across, most = score;
  }
  return best;
}

std::string misfit_of_panels(const ProgramTables& p, const Region& r, const PanelRead& read) {
  const Buffer& b = p.buffer(r.buffer);
  if (b.space != Space::Shared) return fmt::format("'{}' is not in shared memory", b.name);
  const int64_t span = panel_span(p, r.buffer);
  if (span <= kNarrowestPanel) return fmt::format("rows of '{}' are no whole panels of 32, 64 or 128 bytes", b.name);
  if (!read.k_is_last && !read.transposes) return fmt::format("'{}' is not contiguous along k", b.name);
  const size_t rank = r.min.size();
  const int64_t panel = span * 8 / b.type.bits;
  if (read.k_is_last && panel % read.step != 0)
    return fmt::format("one instruction reads more of a row than the {} bytes of a panel of '{}'", span, b.name);
  if (constant_int(b.shape[rank - 2]).value_or(0) % 8 != 0) return fmt::format("rows of '{}' are no eights", b.name);
  if (power_of_two_divisor(r.min[rank - 2], p) % 8 != 0)
    return fmt::format("the tile does not begin at a multiple of eight rows of '{}'", b.name);
  const auto column = constant_int(r.min.back());
  const bool whole_row = read.width == constant_int(b.shape[rank - 1]);
  // A column that only run time knows begins a panel: within one, the offset is part of the swizzle.
  const bool begins =
      column ? *column % (read.k_is_last ? read.step : panel) == 0 : power_of_two_divisor(r.min.back(), p) % panel == 0;
  if (!begins || (!read.k_is_last && read.width % panel != 0 && !whole_row))
    return fmt::format("the tile is no whole panels of '{}'", b.name);
  return "";
}

}  // namespace tilewright::analysis
