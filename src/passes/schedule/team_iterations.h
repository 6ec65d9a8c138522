// The code of one of two teams that take the iterations of a loop in turn.
#pragma once
#include "passes/schedule/team_exchange.h"

namespace tilewright::passes {

// All iterations: its own, whose scores it makes, and between them the other team's products for its columns.
ir::Body iterations_of(const TeamLoop& loop, const TeamExchange& exchange, int team);
// A statement that touches the result, for the team's columns.
ir::Stmt of_columns(const TeamLoop& loop, const ir::Stmt& s, int team);

}  // namespace tilewright::passes
