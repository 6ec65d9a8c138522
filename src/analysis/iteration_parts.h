// The parts of a loop that two teams may take in turn.
#pragma once
#include <optional>

#include "analysis/load_rings.h"

namespace tilewright::analysis {

// A tile, and the statement by which it is brought: a copy that TMA does; a Map that takes rows from anywhere in a
// tensor; a Map of a few elements that everybody may find out.
struct LoopTile {
  enum class By : uint8_t { Tma, Gather, Map };
  ir::Stmt stmt;
  ir::BufferId tile;
  By by = By::Tma;
  bool in_loop = true;  // else once, before the loop
  bool in_own = false;  // who makes the scores also reads it behind the products
};

struct IterationParts {
  ir::Body prologue, epilogue;  // of the launch, around the loop, without copies that the loader does
  const ir::For* loop = nullptr;
  ir::LocationId at;
  // Of the loop's body: names; what is in front of the first product; the products that make the scores; the rest of
  // what makes them; what only changes the result; the product that adds to it; what nobody waits for, like sums.
  ir::Body names, before;
  ir::Body scores, own, rescale, later;
  ir::Stmt product;
  ir::BufferId result, left, values;  // of the last product: c, a, b
  // Fragments of rows that one iteration leaves to what follows it; of these, what is there behind the product only.
  std::set<ir::BufferId> handed, handed_later;
  std::set<ir::BufferId> halved;  // tiles that are brought in halves of their columns
  std::vector<LoopTile> tiles;
  int64_t half = 0;  // columns of the result that a team keeps
};

// None: `why` says what is against it; empty: the launch has no such loop.
std::optional<IterationParts> iteration_parts(const ir::ProgramTables& program, const ir::Launch& launch,
                                              std::string& why);

}  // namespace tilewright::analysis
