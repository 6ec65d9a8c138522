// Writes plans of blocks whose own threads bring the next tile.
#include <set>

#include "analysis/async_copies.h"
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

// The launch as a pipelined loop over tiles: those of a block, or all, of which it draws some. The names before the
// loop stay in the launch. What a fragment takes from memory comes through shared memory.
For loop_over_tiles(const plan::Plan& plan, TileProgram& p, Launch& launch, std::optional<FewBlocks>& drawn) {
  For loop;
  if (plan.work.drawn) {
    const Launch own = launch;
    drawn = with_few_blocks(p, launch, plan.work.blocks, false);
    check_internal(drawn.has_value(), "a launch of one wave draws tiles");
    const DType type = drawn->tiles->type;
    loop.var = p.new_var("tile", type), loop.begin = constant(type, int64_t{0}), loop.extent = drawn->tiles;
    loop.body = bind_tile(p, own, var(loop.var, type), true);
    append(loop.body, own.body);
    launch.body = drawn->names;
  } else {
    check_internal(walk_tiles(p, launch, plan.work.blocks, false), "a launch of one wave takes tiles in turn");
    loop = *launch.body.back().as<For>();
    launch.body.pop_back();
  }
  std::set<BufferId> wanted;
  for (const plan::Ring& r : plan.rings) wanted.insert(r.tiles.begin(), r.tiles.end()), loop.stages = r.slots;
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
    const bool by_own = p.buffer(c->to.buffer).space == Space::Shared;
    const BufferId tile = by_own ? c->to.buffer : p.new_buffer(analysis::arrival_of(*c, p));
    taken.from = arrives.to = {tile, c->to.min, c->to.extent};
    copies.push_back(make_stmt(std::move(arrives), s->location));
    if (!by_own) rest.push_back(make_stmt(std::move(taken), s->location));
  }
  check_internal(wanted.empty(), "a plan brings tiles that the launch has not");
  append(copies, std::move(rest));
  loop.body = std::move(copies);
  loop.kind = LoopKind::Pipelined;
  return loop;
}

// Why tiles do not come ahead; empty: they do.
std::string bring(const plan::Plan& plan, TileProgram& p, Launch& launch) {
  std::optional<FewBlocks> drawn;
  const For loop = loop_over_tiles(plan, p, launch, drawn);
  launch.body.push_back(make_stmt(For(loop), launch.location));
  if (!drawn) return "";
  Body drawing;
  std::string why = draw_tiles(p, launch, loop, drawn->blocks, drawn->block, drawing);
  launch.body.pop_back();
  append(launch.body, std::move(drawing));
  return why;
}

}  // namespace

void bring_ahead(const plan::Plan& plan, TileProgram& p, Launch& launch) {
  const std::string why = bring(plan, p, launch);
  check_internal(why.empty(), "a plan draws tiles that cannot be drawn: {}", why);
}

std::string misfit_ahead(const plan::Plan& plan, TileProgram program, size_t number) {
  if (std::string why = bring(plan, program, program.launches[number]); !why.empty() || plan.work.drawn) return why;
  program.launches = {program.launches[number]};  // what the others are told is not asked
  const AsyncRings rings = materialize_async_rings(std::move(program));
  return rings.notes.empty() ? "" : rings.notes.front().second;
}

}  // namespace tilewright::passes
