// What cp.async brings.
#pragma once
#include <string>

#include "ir/program.h"

namespace tilewright::analysis {

// Whether cp.async brings the whole of a tile in shared memory from global memory as it lies there: rows of whole
// 16-byte pieces, aligned on both sides. `to` may be a tile that takes the place of what the copy fills.
bool comes_by_async_copies(const ir::Copy& c, const ir::Buffer& to, const ir::ProgramTables& program);
// Why it does not.
std::string async_misfit(const ir::Copy& c, const ir::Buffer& to, const ir::ProgramTables& program);

// Whether the copy may come in front of the body that it stands in, behind these statements, and of that body's turn
// before: it fills its tile from global memory in such a way, first of all, from where is known ahead.
bool may_run_ahead(const ir::Copy& c, const ir::Body& before, const ir::ProgramTables& program);

// The tile in shared memory in which a copy from global memory arrives before its turn: its own, or one in the place of
// a fragment.
ir::Buffer arrival_of(const ir::Copy& c, const ir::ProgramTables& program);

// Whether few copies by TMA bring these tiles of shared memory, which are much together: threads that asked for their
// elements would be busy with it.
bool come_in_bulk(const std::vector<ir::Copy>& copies, const ir::ProgramTables& program);
// The same of copies that arrive before their turn.
bool arrive_in_bulk(std::vector<ir::Copy> copies, ir::ProgramTables program);

}  // namespace tilewright::analysis
