// Loops whose turns only add products to sums, so that each may be done by whoever adds its sums to the others'.
#pragma once
#include <optional>

#include "ir/program.h"

namespace tilewright::analysis {

// A pipelined loop at the top of a launch that does nothing but add products, or what maps make of them, to fragments:
// any of its turns may be another block's, whose sums are added to those of this one.
struct SplitLoop {
  size_t at = 0;                   // in the body
  std::optional<int64_t> turns;    // where they are known
  std::vector<ir::BufferId> sums;  // what is added to
  std::optional<int64_t> depth;    // elements of the sum that a turn adds, where one product makes it
};

// None: the turns of no loop can be shared among so many blocks, and `why` says why. Needs gemms as plans find them,
// those that clear what they add to included. Sums of floating-point numbers get another order.
std::optional<SplitLoop> split_loop(const ir::ProgramTables& program, const ir::Launch& launch, int64_t blocks,
                                    std::string& why);

// Likewise, of which blocks take runs of turns that go over several tiles: these have equally many.
std::optional<SplitLoop> streamed_loop(const ir::ProgramTables& program, const ir::Launch& launch, std::string& why);

}  // namespace tilewright::analysis
