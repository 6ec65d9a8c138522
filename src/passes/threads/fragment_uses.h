// What the statements of a launch ask of its fragments: which of them lie alike (layout_classes.h), what gemms want,
// and what no thread could hold in its registers.
#pragma once
#include <map>

#include "passes/threads/gemm_choice.h"
#include "passes/threads/layout_classes.h"

namespace tilewright::passes {

// What has been found out of fragments and gemms, and why. It only grows.
struct Findings {
  std::map<ir::BufferId, std::string> in_memory;  // fragments that live in shared memory
  std::map<ir::StmtId, std::string> no_wgmma;     // gemms whose layouts are not wgmma's
  std::set<ir::StmtId> transposed;                // gemms that wgmma may do the other way round
  std::set<ir::StmtId> cut;                       // Maps over part of a fragment, which other threads hold
  bool is_new = false;                            // there is more than the uses below were collected with
  void to_memory(ir::BufferId root, std::string why) {
    is_new = in_memory.emplace(root, std::move(why)).second || is_new;
  }
};

struct GemmUse {
  ir::Stmt stmt;
  GemmChoice choice;
  size_t c;                              // nodes
  std::optional<size_t> a;               // a fragment in registers
  std::optional<GemmChoice> transposed;  // what wgmma could do instead of another instruction
};

struct FragmentUses {
  LayoutClasses classes;
  std::vector<GemmUse> gemms;
};

// Copy and Fill must have become Maps (elementwise.h).
FragmentUses fragment_uses(const ir::TileProgram& program, const ir::Launch& launch,
                           const analysis::Uniformity& uniformity, const target::GpuTarget& target, Findings& findings);

// Whether it is a fragment, and nothing has been found that takes it from registers.
bool may_be_in_registers(const ir::ProgramTables& program, ir::BufferId id, const Findings& findings);

}  // namespace tilewright::passes
