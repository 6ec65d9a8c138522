// Where the fragments of a launch live, in registers under a layout or in shared memory, and how the points of every
// Map and Reduce are dealt to threads.
#pragma once
#include <map>
#include <set>
#include <string>

#include "analysis/accessed.h"
#include "analysis/uniformity.h"
#include "ir/program.h"
#include "layout/algebra.h"
#include "layout/standard.h"
#include "target/gpu.h"
#include "target/mma.h"
#include "target/wgmma.h"

namespace tilewright::passes {

// Fused multiply-adds on elements of c that a thread keeps: neighbours that it holds (layout/standard.h), and how many
// steps of k come at a time.
struct FmaTile {
  int64_t rows = 1, columns = 1, depth = 1;
  int64_t unit_rows() const { return kTileLanesOfColumn * rows; }
  int64_t unit_columns() const { return kTileLanesOfRow * columns; }
};

// How a Gemm is done: by an instruction of warpgroups, or one of warps, or fused multiply-adds, of tiles in registers
// where the extents allow it.
struct GemmChoice {
  const target::WgmmaInstruction* wgmma = nullptr;
  const target::MmaInstruction* mma = nullptr;
  std::optional<FmaTile> tile;
  // Warp (or warpgroup) i + j * warps_m takes rows i and columns j of the tile.
  int64_t warps_m = 1, warps_n = 1;
  bool a_in_registers = false;
  std::string why_not_wgmma, why_not_mma;
  bool has_instruction() const { return wgmma || mma; }
  bool has_layout() const { return has_instruction() || tile; }
};

struct Placement {
  std::map<ir::BufferId, FragmentLayout> registers;  // fragments that live in registers
  std::map<ir::BufferId, std::string> decided_by;    // of these: what their layouts come from, for people
  std::map<ir::BufferId, std::string> in_memory;     // the others, and why
  std::map<ir::StmtId, FragmentLayout> points;       // Map; Reduce of what is no register fragment; Gemm
  std::map<ir::StmtId, GemmChoice> gemms;
  std::set<ir::BufferId> partial;  // of which each lane that has a copy holds a part of the sum (late_sums.h)
  std::map<ir::StmtId, std::string> no_wgmma;  // gemms whose layouts turned out not to be wgmma's, and why
  const FragmentLayout* layout_of(ir::BufferId id) const {
    auto found = registers.find(id);
    return found == registers.end() ? nullptr : &found->second;
  }
  const FragmentLayout* points_of(const ir::Stmt& s) const {
    auto found = points.find(s->id);
    return found == points.end() ? nullptr : &found->second;
  }
};

// The part of a fragment's layout that a Map over `points` accesses, and its first register. None: the border cuts
// through what a thread holds, or not all threads hold some of it.
std::optional<FragmentSlice> box_of(const FragmentLayout& layout, const analysis::Followed& box,
                                    const std::vector<int64_t>& points);

// Statements have numbers; Copy and Fill must have become Maps (elementwise.h). Deterministic; linear in the number of
// ops for each fragment that must go to memory.
Placement place_fragments(const ir::TileProgram& program, const ir::Launch& launch,
                          const analysis::Uniformity& uniformity, const target::GpuTarget& target);

// The warps (or groups of them) along m and n, of tiles of (unit_m, unit_n); none: they do not divide the tile. Rows
// first: as many along m as may.
std::optional<WarpGrid> divide_warps(ir::GemmPolicy policy, int64_t m, int64_t n, int64_t warps, int64_t unit_m,
                                     int64_t unit_n, bool rows_first);

// The columns of one instruction, of which `columns` are a whole number; 0: there is none.
int64_t wgmma_columns(const target::WgmmaInstruction& instruction, int64_t columns);

// What a reduction of tiles that were dealt this way leaves: the layout without the dimension, whole in every copy.
FragmentLayout reduced(const FragmentLayout& layout, int dim);

}  // namespace tilewright::passes
