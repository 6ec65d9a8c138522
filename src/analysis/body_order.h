// Which accesses of a loop's body may stand at its beginning or its end instead of where they are written.
#pragma once
#include <optional>

#include "ir/effects.h"

namespace tilewright::analysis {

// Whether accesses of the two may be of the same memory: they have one root, or they lie in global memory and one of
// them stands at an address, which may lead anywhere. Parameters do not lie over each other.
bool may_overlap(ir::BufferId a, ir::BufferId b, const ir::ProgramTables& program);
bool may_overlap(ir::BufferId a, const std::set<ir::BufferId>& any, const ir::ProgramTables& program);

// The accesses of one turn of a loop's body in their order. Turns of a Map do not depend on each other. Those of a
// vectorized loop come one after the other: there, what moves stands before or behind all turns.
class BodyOrder {
 public:
  // Of a loop whose turns depend on each other: its variable, from 0, and their number.
  struct Turns {
    ir::VarId var;
    int64_t count = 0;
  };
  BodyOrder(const ir::Body& body, const ir::ProgramTables& program, std::optional<Turns> turns = {});

  // Whether a load, wherever statement `top` of the body makes it, reads what memory holds before the body: nothing
  // that comes before it may change it.
  bool reads_what_was(size_t top, const ir::Expr& load) const;
  // Whether it reads what the Store at statement `store` before it leaves: the same element, changed by nothing else.
  bool reads_what_is_stored(size_t top, const ir::Expr& load, size_t store) const;
  // The statement of such a Store; none: there is none.
  std::optional<size_t> store_read_by(size_t top, const ir::Expr& load) const;
  // Whether the Store, or the Atomic, at statement `store` may happen behind the body. What reads_what_is_stored() of a
  // Store is true of is given the value, and does not count.
  bool may_be_last(size_t store) const;
  // Whether statement `top` makes the load whenever the body runs: no condition stands around it.
  bool surely_reads(size_t top, const ir::Expr& load) const;

 private:
  struct Event {
    size_t top = 0;               // the statement of the body that it belongs to
    ir::BufferId buffer;          // none: it may be any memory
    std::vector<ir::Expr> index;  // none: any element
    bool changes = false, is_sure = false;
    std::vector<const ir::StmtNode*> loops = {};  // around it, inside the body
  };
  void add(const ir::Body& body, std::optional<size_t> top);
  void add(const ir::Stmt& s, size_t top);
  void reads(const ir::Expr& e, size_t top, bool is_sure);
  void touch(ir::BufferId buffer, std::vector<ir::Expr> index, size_t top, bool changes);
  static bool is_load(const Event& e, const ir::Load& load);
  // Whether the one may happen before the other in one turn of the body, and then be of the same element.
  bool clash(size_t before, size_t after) const;
  // Whether they may be of the same element in different turns.
  bool clash_between_turns(const Event& a, const Event& b) const;
  bool may_overlap(const Event& a, const Event& b) const;

  const ir::ProgramTables& program_;
  const std::vector<bool> stores_;  // which statements of the body are Stores
  const std::optional<Turns> turns_;
  std::set<ir::VarId> bound_;
  std::vector<Event> events_;  // in the order in which one turn comes by
  std::vector<const ir::StmtNode*> loops_;
  bool is_sure_ = true;
};

}  // namespace tilewright::analysis
