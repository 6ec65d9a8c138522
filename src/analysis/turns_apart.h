// Whether the turns of loops come to places that have no element in common.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// A box by its dimensions, with its extents where they are known.
struct Box {
  std::vector<ir::Expr> min;
  std::vector<std::optional<int64_t>> extent;
};

// Whether any two turns of these loops, the outermost first, come to boxes that are apart. It follows from dimensions
// whose index goes on by more than a box and what loops inside add to it, and from quotients and rests of a division,
// which together say what was divided. What is bound or stored in the loops counts as anything.
bool turns_are_apart(const ir::ProgramTables& program, const ir::Launch& launch,
                     const std::vector<const ir::StmtNode*>& loops, const Box& box);

// Whether nothing that the expression loads changes while the body, a part of the launch, runs.
bool keeps_loads(const ir::ProgramTables& program, const ir::Launch& launch, const ir::Body& body, const ir::Expr& e);

}  // namespace tilewright::analysis
