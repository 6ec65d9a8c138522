// What TMA can copy between global and shared memory.
#pragma once
#include <string>

#include "ir/program.h"

namespace tilewright::analysis {

constexpr int64_t kStrideBytes = 16;  // rows of a tensor, and where boxes begin in one (CUDA, cuTensorMapEncodeTiled)

// Why TMA does not do the copy, were it asynchronous; empty: it does.
std::string tma_misfit(const ir::Copy& copy, const ir::ProgramTables& program);
// Why it does not bring all of a tile of one dimension that is a row of a matrix of slots.
std::string tma_misfit_as_row(const ir::Copy& copy, const ir::ProgramTables& program);

}  // namespace tilewright::analysis
