// Buffers that become rings: a first dimension of slots, and what accesses of the buffer become. Buffers that become
// parts of a wider one.
#pragma once
#include <map>

#include "ir/program.h"

namespace tilewright::passes {

// Makes so many tiles of one, by a dimension in front. Where elements lie, if it was said as a function of their
// indices, is forgotten: of slots it was not said.
void add_slots(ir::Buffer& tile, int64_t slots);

// The buffer as one of `slots` of a ring: a new row of the table.
ir::BufferId ring_of(ir::ProgramTables& program, ir::BufferId buffer, int64_t slots);

// Accesses of buffers become accesses of a slot of their rings, which `slots` names for each: those of all statements,
// by their fields, and of all expressions.
class IntoSlots {
 public:
  struct Slot {
    ir::BufferId ring;
    ir::Expr number;
    bool is_row = false;  // the buffer has one dimension, its slots are matrices of one row
    std::optional<size_t> along =
        {};  // the dimension of which it is the part from `number` on; none: slots have their own
  };
  explicit IntoSlots(std::map<ir::BufferId, Slot> slots) : slots_(std::move(slots)) {}

  ir::Body body(const ir::Body& in) const;
  ir::Region region(ir::Region r) const;

 private:
  std::optional<ir::Expr> load_of(const ir::Expr& e) const;
  std::optional<ir::Body> statement(const ir::Stmt& s) const;

  std::map<ir::BufferId, Slot> slots_;
};

}  // namespace tilewright::passes
