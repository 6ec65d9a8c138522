// Tile ops as the code of one thread.
#pragma once
#include "passes/threads/deal.h"
#include "passes/threads/placement.h"

namespace tilewright::passes {

struct CollectiveLowering {
  Lowering& l;
  const Placement& placement;
  std::map<ir::BufferId, ir::BufferId> registers;  // a fragment, and the local array that holds a thread's part of it

  // A load of one by the variables of a loop, as a load of the register at hand; none: it is something else.
  std::optional<ir::Expr> in_registers(const ir::Expr& e, const Held& at, const std::vector<ir::VarId>& vars) const;
  bool is_memory(ir::BufferId id) const;
  ir::Stmt barrier(const Team& team) const;
};

ir::Body lower_map(const ir::Map& map, const FragmentLayout* points, const Team& team, CollectiveLowering& c);
// A Copy from global to shared memory of the queue cp_async. What is out of bounds is stored at once.
ir::Body lower_async_copy(const ir::Copy& copy, const FragmentLayout& points, const Team& team, CollectiveLowering& c);
ir::Body lower_reduce(const ir::Reduce& reduce, const FragmentLayout* points, const Team& team, CollectiveLowering& c);
ir::Body lower_scan(const ir::Scan& scan, const Team& team, CollectiveLowering& c);
ir::Body lower_gemm(const ir::Gemm& gemm, const GemmChoice& choice, const FragmentLayout* points, const Team& team,
                    CollectiveLowering& c);

}  // namespace tilewright::passes
