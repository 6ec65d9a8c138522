// What TMA can copy between global and shared memory.
#pragma once
#include <string>
#include <vector>

#include "ir/program.h"

namespace tilewright::analysis {

constexpr int64_t kStrideBytes = 16;  // rows of a tensor, and where boxes begin in one (CUDA, cuTensorMapEncodeTiled)

// Whether TMA does a Copy, which completes on a barrier or in the queue bulk_store: one thread asks for it.
bool is_by_tma(const ir::Copy& copy);
// Why TMA does not do the copy, were it asynchronous; empty: it does.
std::string tma_misfit(const ir::Copy& copy, const ir::ProgramTables& program);
// Why it does not bring all of a tile of one dimension that is a row of a matrix of slots.
std::string tma_misfit_as_row(const ir::Copy& copy, const ir::ProgramTables& program);

// Whether a copy by TMA asks for rows of its tile that lie one after the other (panels.h).
bool wants_rows(const ir::Copy& copy, const ir::ProgramTables& program);

// Whether both sides of a copy from global memory to a tile in shared memory are one run of bytes each, of whole pieces
// of 16: all of a row that is longer than a box. One bulk copy brings it, which knows no bounds (PTX ISA,
// cp.async.bulk). `to`: a tile that takes the place of what the copy fills.
bool is_one_run(const ir::Copy& copy, const ir::Buffer& to, const ir::ProgramTables& program);
// What holds where the run lies inside of its tensor.
std::vector<ir::Expr> inside_of_tensor(const ir::Copy& copy, const ir::ProgramTables& program);

}  // namespace tilewright::analysis
