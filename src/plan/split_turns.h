// Launches whose blocks share the turns of a loop of products.
#pragma once
#include <optional>

#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::plan {

// A pipelined loop at the top of a launch that does nothing but add products to fragments: any of its turns may be
// another block's, whose sums are added to those of this one.
struct SplitLoop {
  size_t at = 0;                   // in the body
  std::optional<int64_t> turns;    // where they are known
  std::vector<ir::BufferId> sums;  // what products add to
  std::optional<int64_t> depth;    // elements of the sum that a turn adds, where one product makes it
};

// None: the turns of no loop can be shared among so many blocks, and `why` says why. Needs gemms as plans find them,
// those that clear what they add to included. Sums of floating-point numbers get another order.
std::optional<SplitLoop> split_loop(const ir::ProgramTables& program, const ir::Launch& launch, int64_t blocks,
                                    std::string& why);

// Likewise, of which blocks take runs of turns that go over several tiles: these have equally many.
std::optional<SplitLoop> streamed_loop(const ir::ProgramTables& program, const ir::Launch& launch, std::string& why);

// Among how many blocks the turns are shared where nobody says: a launch of products whose tiles leave at least half of
// the multiprocessors idle, of so many turns that handing over is worth it. 1: it stays as it is.
int64_t blocks_to_share(const ir::ProgramTables& program, const ir::Launch& launch, const target::GpuTarget& target);

}  // namespace tilewright::plan
