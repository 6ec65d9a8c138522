// TMA stores that may begin before the first element of their tensor.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// TMA fills what a load reads outside and drops what a store writes beyond the end, but a store whose box begins below
// 0 in any dimension is an illegal instruction (CUDA programming guide, tensor memory access; seen on an H100 and an
// H200). A store that is not known to begin at 0 or above asks where it begins, and is a copy of the threads where that
// is below. `natural`: variables that are never negative, among them those of blocks before they were made to walk
// tiles.
ir::Body guard_bulk_stores(ir::ProgramTables& tables, const ir::Launch& launch, const std::vector<ir::VarId>& natural);

}  // namespace tilewright::passes
