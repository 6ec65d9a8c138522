// Which plan a launch gets. Nothing here changes a program.
#pragma once
#include <set>

#include "plan/hints.h"
#include "target/gpu.h"

namespace tilewright::plan {

// Slots of a ring: a gemm with three loses nothing to one with four, and with no more than these one that is given back
// late is missed (measured: 0.97 of the speed).
constexpr int64_t kEnoughSlots = 3;

// What a plan may have, where hints do not fix it. Below these there is another one to try.
struct Limits {
  int64_t slots = 8;                  // of a ring, however many stages the program asks for; below 2 (of blocks side
                                      // by side, below 1): no loader
  Staging staging = Staging::Whole;   // teams that take turns have no room for it: chunks
  bool overlap = true;                // a gemm may still run while the next step's operands are waited for
  bool alternating = true;            // two teams may take the tiles in turn
  bool by_iteration = true;           // ... the iterations of a loop
  bool side_by_side = true;           // two blocks may share a multiprocessor
  bool next_tile = true;              // a slot for what the next tile of the grid needs once
  bool second_slots = true;           // for some of the tiles that have one slot
  bool one_branch = false;            // the roles are written as arms of one branch
  bool other_registers = false;       // the loader leaves the others as many registers as it can, or no longer does
  bool plain_integers = false;        // integers are compared and chosen such that ptxas merges nothing
  const Schedule* without = nullptr;  // a kind of schedule that is not taken where nobody asks for it
  bool fits = true;                   // other threads and steps than the program's may be taken
  // Registers that the tiles of a thread may take before other threads and steps than the program's are taken
  // (fit_registers.h): of the 232 and more that a computing thread has, some hold addresses and rows.
  int64_t live = 224;
  bool operator==(const Limits&) const = default;
};

// What keeps a launch from being cut in roles; empty: nothing.
std::string why_no_roles(const ir::Launch& launch, const target::GpuTarget& target, const Limits& limits);

// Teams that take the iterations of a loop in turn; none: `why` says why, or is empty where the launch has no such
// loop. Of a launch whose results leave from fragments, without a way through shared memory.
std::optional<Plan> teams_by_iteration(const ir::ProgramTables& program, const ir::Launch& launch,
                                       const target::GpuTarget& target, const Limits& limits, const Hints& hints,
                                       std::string& why);

// A loader that fills rings by TMA while the program's own threads compute; without one, the plan says why. Of a
// canonical launch that clears in its gemms what may be cleared there, which nothing keeps from having roles.
Plan loader_plan(const ir::ProgramTables& program, const ir::Launch& launch, const target::GpuTarget& target,
                 const Limits& limits, const Hints& hints);

}  // namespace tilewright::plan
