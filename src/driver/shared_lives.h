// When the shared buffers of a launch are in use: from which of the statements of a role to which.
#pragma once
#include <map>
#include <vector>

#include "ir/program.h"

namespace tilewright {

// Statements of one list: those of the launch that stand in no role, or those of a role. What a loop uses it uses in
// all of its statements.
struct SharedLife {
  int64_t first_thread = 0, end_thread = 0;  // of the role; of all threads where both are those of the launch
  int64_t begin = 0, end = 0, of = 0;        // of so many statements
};

// By root.
std::map<ir::BufferId, std::vector<SharedLife>> shared_lives(const ir::ThreadProgram& program,
                                                             const ir::Launch& launch);

}  // namespace tilewright
