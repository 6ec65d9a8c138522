// Which rows and columns of a product the warps that share it take, and whether its operands lie as wgmma reads them.
#pragma once
#include <optional>
#include <string>

#include "ir/program.h"
#include "layout/standard.h"

namespace tilewright::analysis {

// The warps (or groups of them) along m and n, of tiles of (unit_m, unit_n); none: they do not divide the tile. Rows
// first: as many along m as may.
std::optional<WarpGrid> divide_warps(ir::GemmPolicy policy, int64_t m, int64_t n, int64_t warps, int64_t unit_m,
                                     int64_t unit_n, bool rows_first);
// The warps of a tile that no grid of them divides, of which some have fewer tiles than others: the grid in which none
// has many.
WarpGrid cover_with_warps(ir::GemmPolicy policy, int64_t m, int64_t n, int64_t warps, int64_t unit_m, int64_t unit_n);

// What an instruction that reads panels takes of an operand: along k `step` elements, across it `width`. One that does
// not transpose reads rows along k alone.
struct PanelRead {
  bool k_is_last = false, transposes = false;
  int64_t step = 0, width = 0;
};
// Why the operand does not lie in whole swizzled panels that are read so; empty: it does.
std::string misfit_of_panels(const ir::ProgramTables& program, const ir::Region& operand, const PanelRead& read);

}  // namespace tilewright::analysis
