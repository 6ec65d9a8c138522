// What instructions and layouts allow of a plan, asked before it is applied.
#pragma once
#include <limits>

#include "analysis/stored_once.h"
#include "passes/threads/placement.h"
#include "plan/plan.h"

namespace tilewright::passes {

// What place_fragments says of a launch whose copies are copies yet; they become maps, and widened where they pay
// (widen_maps.h).
Placement foreseen_placement(ir::TileProgram& scratch, size_t launch, const target::GpuTarget& target,
                             size_t buffers = std::numeric_limits<size_t>::max());

// The first asynchronous gemm that is none of wgmma's.
struct NoWgmma {
  ir::LocationId at;
  std::string why;
};
std::optional<NoWgmma> async_gemm_without_wgmma(const ir::Launch& launch, const Placement& placement);

// Of a plan whose rings, roles and work are decided, and the launch that its roles' code is made of: stages no result
// that would not stay in registers, and leaves no gemm open where wgmma does not do all that would be. Gives why the
// program's own asynchronous gemms cannot be under the plan; empty: they can.
std::string settle(plan::Plan& plan, const ir::TileProgram& program, size_t launch,
                   const analysis::StoredTensors& stored, const target::GpuTarget& target);

// Why the roles that have been written for a launch cannot do its gemms, or stage these results; empty: they can.
std::string misfit_of_roles(ir::TileProgram written, size_t launch, const std::vector<ir::BufferId>& staged,
                            const target::GpuTarget& target);

}  // namespace tilewright::passes
