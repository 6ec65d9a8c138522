// What plans write for roles: names for code that is written again, mbarriers, arrivals by warps.
#pragma once
#include <map>
#include <set>

#include "ir/program.h"

namespace tilewright::passes {

// The body with fresh names for what it binds, for code that is written a second time; `names` gets them.
ir::Body renamed(ir::ProgramTables& program, ir::Body body, std::unordered_map<ir::VarId, ir::VarId>* names = nullptr);

inline void append(ir::Body& out, ir::Body more) { out.insert(out.end(), more.begin(), more.end()); }

// Each block of the grid becomes a cluster of so many, by a dimension of its own: a block's number in it.
ir::Expr add_cluster_dimension(ir::ProgramTables& program, ir::Launch& launch, int64_t blocks);

// Over all points of a shape, with names for them; and a point, by these.
ir::Map map_over(ir::ProgramTables& program, const std::vector<ir::Expr>& shape);
std::vector<ir::Expr> point_of(const ir::Map& map);

// `count` mbarriers of a launch, each of which expects `arrivals`.
ir::BufferId new_barriers(ir::ProgramTables& program, const ir::Launch& launch, ir::BarrierUse use, std::string name,
                          int64_t count, int64_t arrivals);

// `block`: of the cluster, whose mbarrier it is; none: this block's.
ir::Stmt arrive_by_warps(ir::Element barrier, ir::LocationId at, ir::Expr block = {});

// What tells which part of a tensor the copies read: variables, through names to those that names are made of. What has
// one value for all blocks tells nothing.
std::set<ir::VarId> vars_of_places(const ir::Launch& launch, const std::vector<ir::Stmt>& copies);

}  // namespace tilewright::passes
