// Loops whose steps may be longer or shorter than the program has them.
#pragma once
#include <map>
#include <optional>
#include <set>

#include "ir/program.h"

namespace tilewright::analysis {

// A step that is the sum of its halves, one after the other, along the dimension in which the loop walks over tensors:
// every tile that comes from there, and all that is made of it, is cut, gemms that add over it take a half at a time.
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

// Of a pipelined loop, a statement of the launch's body, whose halves are at least 64 elements, a tile's column or row
// of panels; none: a step is more than the sum of its halves. Needs canonical tile programs.
std::optional<HalfSteps> half_steps(const ir::ProgramTables& program, const ir::Launch& launch, size_t loop);

// Of a pipelined loop that multiplies what it brings, and nothing else: neighbouring steps of any length are the halves
// of one of twice the length.
std::optional<HalfSteps> product_steps(const ir::ProgramTables& program, const ir::Launch& launch, size_t loop);

// Whether the loop takes all of the dimension that its copies walk over, so many elements of it in a step, so that
// there is nothing but zeros behind.
bool ends_with_tensors(const ir::ProgramTables& program, const ir::For& loop, int64_t step);

}  // namespace tilewright::analysis
