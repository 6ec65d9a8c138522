// Accumulators that a gemm clears itself.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// A fill with zero before a gemm into the tile goes away: the gemm clears. So does one before a loop that surely runs
// and whose one use of the tile is a gemm, the first of which clears, and one before a loop and one at the end of each
// of its turns, where nothing else is between them.
ir::Body clear_in_gemms(const ir::ProgramTables& program, const ir::Body& body);

}  // namespace tilewright::passes
