// Barriers from effects. Two statements of which one writes what the other touches are ordered by a barrier of the
// threads that execute them, unless every element stays with one thread. Between roles of different threads that follow
// each other nothing is inserted: they run beside each other, and their order is the program's. A role of threads that
// one before it has comes after it.
#pragma once
#include "passes/named_barriers.h"
#include "passes/threads/placement.h"

namespace tilewright::passes {

ir::Body place_sync(const ir::TileProgram& program, const ir::Launch& launch, const analysis::Uniformity& uniformity,
                    const Placement& placement, const NamedBarriers& barriers);

}  // namespace tilewright::passes
