// Stores of a block of one warp that all of its lanes do alike. What happens once is done by one thread, under a guard
// and behind barriers; where nothing else touches the buffer, and what is stored is a constant or is stored at most
// once, lanes that store the same bits to the same place do it as well, in one transaction.
#pragma once
#include <set>

#include "analysis/uniformity.h"

namespace tilewright::passes {

std::set<ir::StmtId> alike_stores(const ir::ProgramTables& program, const ir::Launch& launch,
                                  const analysis::Uniformity& uniformity);

}  // namespace tilewright::passes
