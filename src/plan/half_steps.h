// A pipelined loop that takes half of each step at a time, so that what a step holds on chip is half as much.
#pragma once
#include <map>
#include <optional>
#include <set>

#include "ir/program.h"

namespace tilewright::plan {

struct HalfSteps {
  ir::VarId loop;
  int64_t step = 0;                    // elements of tensors that the loop walks over in one step
  std::map<ir::BufferId, size_t> cut;  // tiles of a step, and the dimension that has half the extent
  std::set<ir::VarId> cut_vars;        // of Maps over them
  std::optional<size_t> cut_of(ir::BufferId tile) const {
    const auto found = cut.find(tile);
    return found == cut.end() ? std::nullopt : std::optional(found->second);
  }
};

// What becomes of the loop, a statement of the launch's body, in steps of at least 64 elements, a tile's column or row
// of panels; none: a step is more than the sum of its halves. A step is cut along the dimension in which the loop walks
// over tensors: every tile that comes from there, and all that is made of it, has half the extent, gemms that add over
// it take half at a time. Needs canonical tile programs.
std::optional<HalfSteps> half_steps(const ir::ProgramTables& program, const ir::Launch& launch, size_t loop);

}  // namespace tilewright::plan
