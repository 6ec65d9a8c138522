// What cp.async brings.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// Whether cp.async brings the whole of a tile in shared memory from global memory as it lies there: rows of whole
// 16-byte pieces, aligned on both sides. `to` may be a tile that takes the place of what the copy fills.
bool comes_by_async_copies(const ir::Copy& c, const ir::Buffer& to, const ir::ProgramTables& program);

// Whether the copy may come in front of the body that it stands in, behind these statements, and of that body's turn
// before: it fills its tile from global memory in such a way, first of all, from where is known ahead.
bool may_run_ahead(const ir::Copy& c, const ir::Body& before, const ir::ProgramTables& program);

}  // namespace tilewright::analysis
