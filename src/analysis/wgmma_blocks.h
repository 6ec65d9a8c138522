// Where the device compiler must not take two groups of wgmma for one.
#pragma once
#include <vector>

#include "ir/program.h"

namespace tilewright::analysis {

// In one basic block ptxas (12.8 and 13.0) takes what is computed from an accumulator after a group of wgmma for what
// was computed from it after an earlier group, and may then leave the later one out: c[i] * 2 is that of the first turn
// in all turns of an unrolled loop. By fence of wgmma in the order of the text: whether a branch must stand before it,
// since two groups and a read behind each have none between them. A wait for an mbarrier is a branch; the ends of loops
// are none, since loops may be unrolled.
std::vector<bool> wgmma_fences_to_split(const ir::Body& code, const ir::ProgramTables& program);

}  // namespace tilewright::analysis
