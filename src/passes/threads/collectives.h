// Tile ops as the code of one thread.
#pragma once
#include "analysis/tma.h"
#include "passes/threads/deal.h"
#include "passes/threads/open_groups.h"
#include "passes/threads/placement.h"
#include "passes/threads/warp_boxes.h"

namespace tilewright::passes {

struct CollectiveLowering {
  Lowering& l;
  const Placement& placement;
  std::map<ir::BufferId, ir::BufferId> registers;  // a fragment, and the local array that holds a thread's part of it
  OpenGroups open = {};                            // of wgmma, by the local arrays that they use
  int loops = 0;                                   // around the statement at hand
  bool meets = false;  // in each turn of the innermost of them all threads do, whatever the turn does
  // Whether who still reads what the statement left in the turn before is not to be waited for.
  bool has_met_since() const { return loops == 0 || meets; }
  std::set<ir::BufferId> changed = {};              // roots, by the launch
  bool streams = false;                             // more loads of a thread are on their way than its usual registers
  std::map<ir::BufferId, WarpBox> warp_boxes = {};  // of tiles that warps bring away by themselves

  // A load of one by the variables of a loop, as a load of the register at hand; none: it is something else.
  std::optional<ir::Expr> in_registers(const ir::Expr& e, const Held& at, const std::vector<ir::VarId>& vars) const;
  bool is_memory(ir::BufferId id) const;
  ir::Stmt barrier(const Team& team) const;
};

// The tile op of the statement, in a file of the op's.
template <ir::TileOp Op>
ir::Body lower_for_thread(const Op& op, const ir::Stmt& s, const Team& team, CollectiveLowering& c);

constexpr int64_t kMaxLanes = 32;  // of a loop that moves them at once
// A vectorized loop of thread code: what its iterations access side by side, at once. Its body is made of stores of
// each thread's own and of names. None: they access nothing so.
std::optional<ir::Body> lower_lanes(const ir::For& lanes, const Team& team, CollectiveLowering& c);
// A loop over neighbours that a thread stores by the queue cp_async, in one tile or several. None: no instruction does
// it, or not in the layouts.
std::optional<ir::Body> lower_async_store(const ir::For& loop, const Team& team, CollectiveLowering& c);
// A Copy from global to shared memory of the queue cp_async.
ir::Body lower_async_copy(const ir::Copy& copy, const FragmentLayout& points, const Team& team, CollectiveLowering& c);
// What a thread of each warp, always the same, does for its warp.
ir::Body by_each_warp(ir::Body body, const Lowering& l);
// What one thread of the team, always the same, does for all.
ir::Body by_one_thread(ir::Body body, const Team& team, const Lowering& l);
// What the ways of multiplying share: the variable of an unrolled loop, the register of an element, the place in a tile
// in memory, and neighbours along k as one word of 32 bits.
ir::Expr unrolled_index(Lowering& l, const char* name, int64_t extent);
int64_t register_at(const FragmentLayout& layout, int64_t row, int64_t column);
std::vector<ir::Expr> index_in(const ir::Region& tile, const ir::Expr& row, const ir::Expr& column);
ir::Expr packed_word(DType type, function_ref<ir::Expr(int64_t element)> element);
int64_t depth_of(const ir::Gemm& gemm);  // k, a constant; of a sparse one as b has it
// The word of metadata of a lane for the 16 rows from `row` on, in one step of an instruction (target/mma.h).
ir::Expr metadata_word(const ir::Gemm& gemm, const ir::Expr& row, const ir::Expr& step, const ir::Expr& lane,
                       const Lowering& l);
ir::Body lower_wgmma(const ir::Gemm& gemm, const GemmChoice& choice, const Team& team, CollectiveLowering& c);
ir::Body lower_register_tile(const ir::Gemm& gemm, const GemmChoice& choice, const Team& team, CollectiveLowering& c);

}  // namespace tilewright::passes
