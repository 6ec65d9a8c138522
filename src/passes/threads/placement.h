// Where the fragments of a launch live, in registers under a layout or in shared memory, and how the points of every
// Map and Reduce are dealt to threads.
#pragma once
#include <map>
#include <set>
#include <string>

#include "passes/threads/gemm_choice.h"
#include "passes/threads/matrix_stores.h"

namespace tilewright::passes {

// How threads join what each of them has of a result.
struct Join {
  ir::ReduceOp op = ir::ReduceOp::Sum;
  bool nan_propagate = false;
  bool operator==(const Join&) const = default;
};

struct Placement {
  std::map<ir::BufferId, FragmentLayout> registers;  // fragments that live in registers
  std::map<ir::BufferId, std::string> decided_by;    // of these: what their layouts come from, for people
  std::map<ir::BufferId, std::string> in_memory;     // the others, and why
  std::map<ir::StmtId, FragmentLayout> points;       // Map; Reduce of what is no register fragment; Gemm
  std::map<ir::StmtId, GemmChoice> gemms;
  std::map<ir::StmtId, MatrixStore> matrix_stores;  // Maps
  std::set<ir::StmtId> cut;                         // Maps that took a fragment to memory as they run over part of it
  std::map<ir::BufferId, Join> partial;             // of which each lane that has a copy holds a part (late_sums.h)
  const FragmentLayout* layout_of(ir::BufferId id) const {
    auto found = registers.find(id);
    return found == registers.end() ? nullptr : &found->second;
  }
  const FragmentLayout* points_of(const ir::Stmt& s) const {
    auto found = points.find(s->id);
    return found == points.end() ? nullptr : &found->second;
  }
  const GemmChoice& choice_of(const ir::Stmt& gemm) const { return gemms.at(gemm->id); }
};

// Statements have numbers; Copy and Fill must have become Maps (elementwise.h). Deterministic; linear in the number of
// ops for each fragment that must go to memory.
Placement place_fragments(const ir::TileProgram& program, const ir::Launch& launch,
                          const analysis::Uniformity& uniformity, const target::GpuTarget& target);

}  // namespace tilewright::passes
