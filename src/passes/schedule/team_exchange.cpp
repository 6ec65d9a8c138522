#include "passes/schedule/team_exchange.h"

#include "ir/extent.h"
#include "ir/operators.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/slots.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// A tile in shared memory like a fragment; `of_both`: a slot for each team.
BufferId shared_like(ProgramTables& p, BufferId fragment, bool of_both) {
  Buffer b = p.buffer(fragment);
  b.name += "_handed", b.space = Space::Shared, b.layout = {};
  if (of_both) add_slots(b, 2);
  return p.new_buffer(std::move(b));
}

Region slot_of(const TeamLoop& l, BufferId rows, int team) {
  Region r = whole(rows, l.p);
  r.min[0] = constant(team), r.extent[0] = constant(1);
  return r;
}

Stmt copied(const TeamLoop& l, Region from, Region to) {
  Copy c;
  c.from = std::move(from), c.to = std::move(to);
  return l.stmt(std::move(c));
}

}  // namespace

TeamExchange open_exchange(const TeamLoop& l) {
  TeamExchange x;
  x.ready = new_barriers(l.p, l.launch, BarrierUse::Ready, "ready", 2, kTeamWarps);
  x.scores = shared_like(l.p, l.parts.left, false);
  if (!l.parts.handed_later.empty())
    x.later = new_barriers(l.p, l.launch, BarrierUse::Ready, "ready_later", 2, kTeamWarps);
  for (const std::set<BufferId>* ids : {&l.parts.handed, &l.parts.handed_later})
    for (BufferId id : *ids) x.rows[id] = shared_like(l.p, id, true);
  return x;
}

void leave_rows(const TeamLoop& l, const TeamExchange& x, const std::set<BufferId>& rows, BufferId ready, int team,
                Body& out) {
  for (BufferId id : rows) out.push_back(copied(l, whole(id, l.p), slot_of(l, x.rows.at(id), team)));
  out.push_back(arrive_by_warps({ready, {constant(team)}}, l.parts.at));
}

void take_rows(const TeamLoop& l, const TeamExchange& x, const std::set<BufferId>& rows, BufferId ready, int peer,
               const Count& count, Body& out) {
  if (!ready.valid()) return;
  out.push_back(l.stmt(Wait{{ready, {constant(peer)}}, count.in(2).parity}));
  for (BufferId id : rows) out.push_back(copied(l, slot_of(l, x.rows.at(id), peer), whole(id, l.p)));
}

}  // namespace tilewright::passes
