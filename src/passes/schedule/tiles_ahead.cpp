// Writes plans of blocks whose own threads bring the next tile.
#include <set>

#include "ir/effects.h"
#include "ir/operators.h"
#include "ir/rewrite.h"
#include "passes/schedule/async_rings.h"
#include "passes/schedule/role_code.h"
#include "passes/schedule/schedules.h"
#include "passes/schedule/walk_tiles.h"

namespace tilewright::passes {

using namespace ir;

namespace {

// Of a fragment: as the copy brings it, in shared memory.
BufferId shared_tile(TileProgram& p, const Launch& launch, const Copy& c) {
  const Buffer& to = p.buffer(c.to.buffer);
  if (to.space == Space::Shared) return c.to.buffer;
  Buffer b;
  b.name = to.name + "_next", b.type = p.buffer(c.from.buffer).type, b.shape = to.shape, b.space = Space::Shared;
  b.launch = static_cast<int32_t>(&launch - p.launches.data());
  return p.new_buffer(std::move(b));
}

}  // namespace

void bring_ahead(const plan::Plan& plan, TileProgram& p, Launch& launch) {
  std::set<BufferId> wanted;
  int64_t slots = 0;
  for (const plan::Ring& r : plan.rings) wanted.insert(r.tiles.begin(), r.tiles.end()), slots = r.slots;
  check_internal(walk_tiles(p, launch, plan.work.blocks, false), "a launch of one wave takes tiles in turn");
  const Stmt tiles = launch.body.back();
  For loop = *tiles.as<For>();
  Substitution names;  // of the tile: what the copies of the next turn cannot read
  Body copies, rest;
  for (const Stmt& s : loop.body) {
    if (const auto* let = s.as<Let>()) names[let->var] = substitute(let->value, names);
    const auto* c = s.as<Copy>();
    if (!c || !wanted.erase(c->to.buffer)) {
      rest.push_back(s);
      continue;
    }
    Copy arrives = *substitute(Body{s}, names)[0].as<Copy>(), taken = *c;
    taken.from = arrives.to = {shared_tile(p, launch, *c), c->to.min, c->to.extent};
    copies.push_back(make_stmt(std::move(arrives), s->location));
    if (taken.from.buffer != taken.to.buffer) rest.push_back(make_stmt(std::move(taken), s->location));
  }
  check_internal(wanted.empty(), "a plan brings tiles that the launch has not");
  append(copies, std::move(rest));
  loop.body = std::move(copies);
  loop.kind = LoopKind::Pipelined, loop.stages = slots;
  launch.body.back() = make_stmt(std::move(loop), tiles->location);
}

std::string misfit_ahead(const plan::Plan& plan, TileProgram program, size_t number) {
  bring_ahead(plan, program, program.launches[number]);
  program.launches = {program.launches[number]};  // what the others are told is not asked
  const AsyncRings rings = materialize_async_rings(std::move(program));
  return rings.notes.empty() ? "" : rings.notes.front().second;
}

}  // namespace tilewright::passes
