// What two teams that take iterations in turn leave to each other: the scores of an iteration, and rows like the
// maximum, through shared memory.
#pragma once
#include "passes/schedule/team_loop.h"

namespace tilewright::passes {

// One tile for the scores: who writes it next is who has just read it, so it needs a barrier for "ready" and none for
// "free".
struct TeamExchange {
  ir::BufferId scores;
  ir::BufferId ready, later;  // mbarriers, one a team; `later`: of rows that are there behind the product only
  std::map<ir::BufferId, ir::BufferId> rows;  // of fragments: one slot a team
};
TeamExchange open_exchange(const TeamLoop& loop);

// The team leaves the rows and says so.
void leave_rows(const TeamLoop& loop, const TeamExchange& exchange, const std::set<ir::BufferId>& rows,
                ir::BufferId ready, int team, ir::Body& out);
// Takes the rows that `peer` has left in iteration `count`, when it has said so.
void take_rows(const TeamLoop& loop, const TeamExchange& exchange, const std::set<ir::BufferId>& rows,
               ir::BufferId ready, int peer, const Count& count, ir::Body& out);

}  // namespace tilewright::passes
