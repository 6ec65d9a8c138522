// What plans write for roles: names for code that is written again, mbarriers, arrivals by warps.
#pragma once
#include <map>
#include <set>

#include "ir/program.h"

namespace tilewright::passes {

// The body with fresh names for what it binds, for code that is written a second time; `names` gets them.
ir::Body renamed(ir::ProgramTables& program, ir::Body body, std::unordered_map<ir::VarId, ir::VarId>* names = nullptr);

inline void append(ir::Body& out, ir::Body more) { out.insert(out.end(), more.begin(), more.end()); }

// `count` mbarriers of a launch, each of which expects `arrivals`.
ir::BufferId new_barriers(ir::ProgramTables& program, const ir::Launch& launch, ir::BarrierUse use, std::string name,
                          int64_t count, int64_t arrivals);

// `block`: of the cluster, whose mbarrier it is; none: this block's.
ir::Stmt arrive_by_warps(ir::Element barrier, ir::LocationId at, ir::Expr block = {});

// What tells which part of a tensor the copies read: variables, through names to those that names are made of. What has
// one value for all blocks tells nothing.
std::set<ir::VarId> vars_of_places(const ir::Launch& launch, const std::vector<ir::Stmt>& copies);

}  // namespace tilewright::passes
