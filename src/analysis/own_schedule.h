// What a program decides itself, so that no plan may.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// Why a launch stays as the program has it, whatever it computes: it schedules itself, or threads return early. Empty:
// it need not.
std::string why_as_written(const ir::Launch& launch);
// Why its blocks get no cluster, which has a dimension of its own in the grid if asked for. Empty: they may.
std::string why_no_cluster(const ir::Launch& launch, bool by_dimension);
// Whether the program says how tiles lie on chip: they have its extents, then.
bool has_own_layouts(const ir::ProgramTables& program, const ir::Launch& launch);

// Whether the body means the same with any number of threads.
bool counts_no_threads(const ir::ProgramTables& program, const ir::Launch& launch);

}  // namespace tilewright::analysis
