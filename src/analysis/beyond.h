// Boxes that reach beyond their tensors, alike in all turns of a loop.
#pragma once
#include <optional>

#include "ir/program.h"

namespace tilewright::analysis {

// Along one dimension, `pieces` of so many elements are what there may be of the box inside of the tensor; each is a
// box that TMA brings. The last is what the others leave, of any size.
struct Beyond {
  size_t dim = 0;           // of the tensor
  bool is_columns = false;  // of the tile in shared memory; else its rows
  int64_t piece = 0, pieces = 0;
  bool is_known = false;  // the rest of the box is beyond wherever it begins
  // Whether so many elements of a box being inside, not all of it comes.
  bool leaves_some(int64_t inside) const { return is_known || inside <= piece * (pieces - 1); }
  // How many of the pieces hold something of the tensor, from 0 to `pieces` (int32).
  ir::Expr inside(const ir::Copy& copy, const ir::ProgramTables& program) const;
};

// Of a load of a tile by TMA that stands in the loop: where a quarter of the box or more may lie beyond the tensor
// along a dimension, in which it begins at the same place in every turn. Blocks of the launch are where its grid has
// them.
std::optional<Beyond> beyond_its_tensor(const ir::Copy& load, const ir::For& loop, const ir::Launch& launch,
                                        const ir::ProgramTables& program);

}  // namespace tilewright::analysis
