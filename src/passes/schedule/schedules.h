// What kinds of schedules (plan/schedule.h) make of a launch: a row and a function each, which stands in a file of its
// own.
#pragma once
#include "plan/schedule.h"

namespace tilewright::passes {

// What a schedule leaves to do at the end of a launch's roles.
struct Ending {
  ir::Body of_others = {};  // by the threads that compute, in their role, when all blocks of the grid have come there:
                            // elsewhere it would take registers of other roles
  bool together = false;    // no block of a cluster ends before the others
};

// What a schedule takes from the code of the threads that compute, for a warp that the loader leaves.
struct OwnWarp {
  ir::Body code = {};
  std::string why = {};                                     // there is nothing that it can do
  std::vector<std::pair<ir::VarId, ir::VarId>> names = {};  // of those who compute, and what it calls the same
};

// Every tile of the grid gets a cluster of so many blocks, by a dimension of its own. Each runs a contiguous part of
// the loop's turns, those before the others one more where they do not divide evenly; then all but the first write
// their sums to its shared memory, each to a tile of its own, and it adds them in the order of the blocks and does the
// rest of the launch. Needs a launch that can be split (analysis/summed_turns.h).
Ending split_turns(ir::TileProgram& program, ir::Launch& launch, const plan::Use& use);

// The launch as one of so many blocks. Of all tiles but those of the last wave, and the whole one before it, each takes
// whole ones. The turns of the others, one tile behind the other, are cut into as many equal runs as there are blocks.
// A run that ends within a tile leaves its sums in a workspace. Whoever has the end of a tile that others began keeps
// its sums, and when all have come to the end of their runs, he adds those of the others to them, from the last to the
// first, whoever came when, and does the rest of the launch for the tile. Needs a launch whose loop can be streamed
// (analysis/summed_turns.h).
Ending stream_k(ir::TileProgram& program, ir::Launch& launch, const plan::Use& use);

// Neighbours along the shared tile's dimension of the grid form clusters. Where there may be an odd number of them, the
// grid has one more, whose block leaves nothing.
Ending pair_blocks(ir::TileProgram& program, ir::Launch& launch, const plan::Use& use);

// What loops leave in their turns by TMA, another warp stores: those who compute hand it a tile in shared memory by a
// pair of mbarriers, at one of so many places, and wait for nothing else. It runs the loops and conditions around the
// stores, which must not be known to the computing threads alone.
OwnWarp store_role(ir::TileProgram& program, const ir::Launch& launch, const plan::Use& use, int64_t warps,
                   ir::Body& compute);

// The launch as a loop over tiles: at its head the copies of the rings, to shared tiles from which fragments are then
// filled where the program fills them. Where blocks draw tiles, the copies run ahead; else the loop is pipelined by as
// many stages as the rings have slots, and async_rings lets them run ahead, or says why it cannot.
void bring_ahead(const plan::Plan& plan, ir::TileProgram& program, ir::Launch& launch);
std::string misfit_ahead(const plan::Plan& plan, ir::TileProgram program, size_t launch);

// Each tile of the grid gets a cluster of blocks, by a dimension of its own, of which each has a part of the columns of
// the launch's tiles. What a reduction along them finds in a part each block tells the others. What has no columns
// every block does for itself, but one alone writes it to memory. Needs a launch whose rows can be shared
// (analysis/shared_rows.h).
void share_rows(const plan::Plan& plan, ir::TileProgram& program, ir::Launch& launch);

struct ScheduleCode {
  const plan::Schedule* of;
  // Of a launch whose rings are not found yet, clears in gemms included.
  Ending (*shape)(ir::TileProgram&, ir::Launch&, const plan::Use&) = nullptr;
  // Of the code of so many warps that compute, which is otherwise as it will be.
  OwnWarp (*part)(ir::TileProgram&, const ir::Launch&, const plan::Use&, int64_t warps, ir::Body& compute) = nullptr;
  // Of schedules that plan the whole launch; why what is written cannot be, where that may happen.
  void (*write)(const plan::Plan&, ir::TileProgram&, ir::Launch&) = nullptr;
  std::string (*misfit)(const plan::Plan&, ir::TileProgram, size_t launch) = nullptr;
};

inline constexpr ScheduleCode kScheduleCode[] = {
    {.of = &plan::kSharedRows, .write = share_rows},
    {.of = &plan::kTilesAhead, .write = bring_ahead, .misfit = misfit_ahead},
    {.of = &plan::kSplit, .shape = split_turns},
    {.of = &plan::kStreamK, .shape = stream_k},
    {.of = &plan::kPairs, .shape = pair_blocks},
    {.of = &plan::kStoreRole, .part = store_role},
};
static_assert(std::size(kScheduleCode) == plan::kSchedules.size());

inline const ScheduleCode& code_of(const plan::Schedule& schedule) {
  return *std::ranges::find(kScheduleCode, &schedule, &ScheduleCode::of);
}

}  // namespace tilewright::passes
