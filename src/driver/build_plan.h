// From a program to its launch plan: which argument is what, how symbols are solved, what is checked.
#pragma once
#include "ir/program.h"
#include "runtime/launch_plan.h"

namespace tilewright {

// Puts the symbols in an order in which each can be solved from one dimension or stride and the symbols before it.
// CompileError UnsolvedSymbol where there is none.
ir::TileProgram order_symbols(ir::TileProgram program);

// Needs order_symbols(). Without sites: they are the engine's.
runtime::LaunchPlan build_plan(const ir::TileProgram& program);

// An expression of symbols and scalar parameters as the host computes it, by their places in the plan.
runtime::IntProgram host_expression(const ir::Expr& e, ir::LocationId at, const ir::ProgramTables& program);

}  // namespace tilewright
