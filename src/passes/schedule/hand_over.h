// What a role leaves in shared memory as the last thing that it tells anyone, and another reads at its own end, has no
// barrier between them in some programs: they are right because of the time that something else takes. There is one.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

struct HandOver {
  ir::BufferId buffer;
  ir::LocationId read;  // the first in a role that reads it
};

// Changes the body: a named barrier between the one write of such a buffer and its readers. Only where no wait can come
// of it that goes round in a circle: behind the write its role arrives nowhere, nor do the readers from their read on.
std::vector<HandOver> order_hand_overs(ir::Launch& launch, const ir::ProgramTables& program);

}  // namespace tilewright::passes
