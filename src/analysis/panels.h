// Of what a tile in shared memory is made where TMA fills it: panels, rows, boxes.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

constexpr int64_t kSharedAlignment = 128;  // bytes: of a buffer, for any access and TMA

// Bytes of the widest panel (128, 64, 32) that whole rows of the buffer are made of (where its own panel is 128, whole
// rows but for the last of them: a box that is narrower than its swizzle leaves the rest of each row of 128 bytes as it
// is; CUDA C++ Programming Guide, tensor memory access), or 16 if a row is that and lies in
// one that TMA fills but no matrix instruction reads; 0: none, or the buffer is seen through views, which know no
// panels.
constexpr int64_t kNarrowestPanel = 16, kWidestPanel = 128;
int64_t panel_span(const ir::ProgramTables& program, ir::BufferId id);
int64_t panel_span(const ir::Buffer& seen_through_no_views);

// Elements of a box along a dimension, at most (CUDA driver API, cuTensorMapEncodeTiled).
constexpr int64_t kMaxBox = 256;

// Elements of a row that one TMA copy brings: those of a panel, or the whole row of a tile that has only one, which
// nothing swizzles: panels are eight rows high. A tile of one dimension is a row. 0: none, as of a row that several
// narrow panels would be.
int64_t box_columns(const ir::ProgramTables& program, ir::BufferId id);
int64_t box_columns(const ir::Buffer& seen_through_no_views);

// Whether TMA may bring rows of a tile one by one, wherever they are: those lie one after the other, unswizzled, in a
// tile whose panels are the narrowest.
bool comes_by_rows(const ir::Buffer& seen_through_no_views);

// Whether nothing but the code of threads says how the buffer lies in memory.
bool may_have_layout(const ir::ProgramTables& program, ir::BufferId id);

// Whether a tensor may begin at any of its elements: of others wide accesses may ask for more.
bool begins_anywhere(const ir::Buffer& tensor);

}  // namespace tilewright::analysis
