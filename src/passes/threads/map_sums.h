// Atomics of a Map of which all points meet in one element of the block's memory: each thread adds up its own points,
// each warp its threads, and one lane changes the element.
#pragma once
#include "passes/threads/collectives.h"

namespace tilewright::passes {

class MapSums {
 public:
  MapSums(const ir::Map& map, const Team& team, Lowering& l);

  ir::Body begin();  // before the points
  // In place of an atomic of the point at hand; none: it stays.
  std::optional<ir::Body> take(const ir::Stmt& s, const Held& at) const;
  ir::Body end();  // behind them, where all threads of the team come by

 private:
  struct Sum {
    ir::Element to;  // by indices that are the same for all points and threads
    ir::AtomicOp op;
    ir::BufferId part;  // of the thread: the value so far
  };
  bool may_meet(const ir::Atomic& n, const std::set<ir::VarId>& uniform, const std::set<ir::BufferId>& read) const;
  // Whether some point comes to the statement; whether the element exists, whoever asks.
  static bool is_sure(const ir::Map& map, const ir::Stmt& s);
  bool is_there(const ir::Element& e) const;
  const Sum* sum_of(const ir::Atomic& n) const;
  ir::Expr part(const Sum& s) const;

  const Team& team_;
  Lowering& l_;
  std::vector<Sum> sums_;
};

}  // namespace tilewright::passes
