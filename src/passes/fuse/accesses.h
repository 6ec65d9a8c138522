// What the statements of a loop program touch, and whether two of them may touch the same element.
#pragma once
#include "ir/program.h"
#include "passes/lower/intervals.h"

namespace tilewright::passes {

struct ElementAccess {
  ir::BufferId buffer;
  std::vector<ir::Expr> index;  // none in a dimension: anywhere
  bool write = false;
};

struct Accesses {
  std::vector<ElementAccess> list;
  std::set<ir::VarId> bound, used;  // variables
  std::set<ir::BufferId> sums;      // that products add to
  bool opaque = false;              // jumps, prints: its place is where it stands
};

Accesses accesses_of(const ir::Stmt& s, const ir::ProgramTables& program);
Accesses accesses_of(const ir::Body& body, const ir::ProgramTables& program);

// Ranges of the variables of a body: of loops, and of what Lets bind. A variable of several loops gets the widest.
void note_ranges(const ir::Body& body, Intervals& ranges);

class Dependences {
 public:
  Dependences(const ir::ProgramTables& program, const Intervals& ranges) : program_(program), ranges_(ranges) {}

  // May the two change places? Variables that `a` or `b` bind have values of their own in each.
  bool commute(const Accesses& a, const Accesses& b) const;
  // Do iterations i of a loop with body `a` and j of one with body `b` touch a common element, one of them writing,
  // only if i = j? Both bodies name their iteration `iteration`.
  bool only_at_same_iteration(const Accesses& a, const Accesses& b, ir::VarId iteration) const;

 private:
  bool may_conflict(const ElementAccess& a, const ElementAccess& b) const;
  const ir::ProgramTables& program_;
  const Intervals& ranges_;
};

}  // namespace tilewright::passes
