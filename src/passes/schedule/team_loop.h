// What the roles of teams that take iterations in turn share: the tiles of the loop as rings, and its code in a turn.
#pragma once
#include "analysis/iteration_parts.h"
#include "layout/fragment.h"
#include "passes/schedule/ring.h"
#include "plan/plan.h"
#include "target/wgmma.h"

namespace tilewright::passes {

using analysis::IterationParts;
using analysis::LoopTile;

inline constexpr int64_t kTeamThreads = target::kWarpgroupThreads, kTeamWarps = kTeamThreads / kWarpThreads;

// What is brought as one: a tile, or a half of its columns.
struct TeamTile {
  LoopTile of;
  ir::BufferId tile;
  int64_t column = 0;  // of the tensor that is the tile's first, from where it would be
  int half = -1;       // of the values: team 0's or 1's; else read by the owner of the iteration only
};
// What one warp of the loader brings in each iteration.
struct TeamRing {
  TeamTile brought;
  SlotRing ring;
  bool in_scores = true;  // so a team that has the scores need not wait for it
};

// An iteration: `pair` times two and `more`, or `more` and a number that is not known.
struct Count {
  ir::Expr pair, base;
  int64_t more = 0;
  ir::Expr number() const;
  Count before() const { return {pair, base, more - 1}; }
  Turn in(int64_t slots) const;
};

struct TeamLoop {
  ir::TileProgram& p;
  const ir::Launch& launch;
  const IterationParts& parts;
  const ir::For loop;
  std::vector<TeamRing> rings;
  std::vector<TeamTile> once;                                // brought before the loop
  SlotRing once_ring;                                        // of all of them
  std::map<ir::BufferId, std::vector<ir::BufferId>> halves;  // of tiles that come in two

  template <class T>
  ir::Stmt stmt(T op) const {
    return ir::make_stmt(std::move(op), parts.at);
  }
  ir::Stmt serial(ir::VarId v, ir::Expr turns, ir::Body body) const;
  ir::Expr extent() const;
  const TeamRing* ring(ir::BufferId tile) const;
  // Code of the loop's body as iteration `count` runs it, on the slots of that iteration.
  ir::Body in_turn(const ir::Body& body, const Count& count) const;
  // The columns of a panel.
  void narrow(ir::Region& r, const SlotRing& ring, int64_t panel) const;
};
TeamLoop open_team_loop(ir::TileProgram& program, const ir::Launch& launch, const IterationParts& parts,
                        const plan::Plan& plan);

// The code behind those of the names that it uses.
ir::Body behind_names(const ir::Body& names, ir::Body code);

}  // namespace tilewright::passes
