// Blocks that draw the next tile of a grid from a counter: who is done early takes more of them.
#pragma once
#include <vector>

#include "ir/program.h"

namespace tilewright::passes {

// Numbers of tiles by the turn of a block's loop. Turn 0 has the block's own; all others are drawn, `ahead` turns
// before theirs, by one thread, which leaves them in shared memory. Behind the last tile a block finds the number of
// all tiles, and draws no more. So as many are drawn as there are tiles, and who draws the last of them sets the
// counter, a workspace, to zero again.
class DrawnTiles {
 public:
  // `tiles`, `blocks`: how many there are, at least as many tiles as blocks; `block`: the number of this one.
  DrawnTiles(ir::TileProgram& program, const ir::Launch& launch, ir::Expr tiles, ir::Expr blocks, ir::Expr block,
             int64_t ahead);

  // The numbers of turns before `ahead`, before the loop.
  ir::Body first_numbers();
  ir::Expr number_of(const ir::Expr& turn) const;
  const ir::Expr& first() const { return block_; }  // of turn 0
  ir::Expr is_a_tile(const ir::Expr& number) const;
  ir::Assume known(const ir::Expr& number) const;  // of one that is
  const ir::Expr& tiles() const { return tiles_; }
  // Of the turn that is `ahead` of this one: `ask`, by the number of the turn before that one; `keep` at the end of the
  // turn, so that the thread does not wait for the answer.
  ir::Body ask(const ir::Expr& number_before);
  ir::Body keep(const ir::Expr& turn);

 private:
  template <class T>
  ir::Stmt at_launch(T op) const;
  ir::Expr number(int64_t n) const;
  ir::Expr drawn() const;
  ir::Expr number_drawn() const;
  ir::Body by_one_thread(ir::Body body) const;
  ir::Body draw(const ir::Expr& if_this);
  ir::Body leave(const ir::Expr& turn) const;

  ir::TileProgram& program_;
  const ir::LocationId at_;
  const std::vector<ir::VarId> threads_;
  const ir::Expr tiles_, blocks_, block_;
  const int64_t ahead_;
  const DType type_;  // of numbers of tiles
  ir::BufferId counter_, numbers_;
  ir::BufferId drawn_;  // what the counter held; -1: nothing was drawn
};

}  // namespace tilewright::passes
