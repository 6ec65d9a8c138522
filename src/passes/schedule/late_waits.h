// Gemms that run on while what does not need them goes on.
#pragma once
#include <map>
#include <set>

#include "ir/program.h"

namespace tilewright::passes {

// By the mbarrier on which slots are given back: the buffers of the slots.
using SlotsOf = std::map<ir::BufferId, std::set<ir::BufferId>>;

// In loops with several gemms into fragments each becomes a group of wgmma that is waited for where a statement needs
// its registers, or overwrites what it reads, at the latest at the loop's end; slots that it reads are given back
// behind that wait. Gemms come in the order of the program, and so do their groups: what is waited for is what came
// before. Needs the code of the computing threads, slots and mbarriers written out; lowering then insists on wgmma.
ir::Body wait_late(const ir::ProgramTables& program, const ir::Body& body, const SlotsOf& slots);

}  // namespace tilewright::passes
