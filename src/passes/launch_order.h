// Waits for the launches before, and what lets those after begin, in lowered programs.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Without both: the program for an engine that runs launches one after the other, where they mean nothing.
ir::TileProgram drop_launch_order(ir::TileProgram program);

// What a launch says of the others.
struct LaunchOrder {
  bool waits = false, lets_begin = false;
  bool any() const { return waits || lets_begin; }
};
LaunchOrder launch_order(const ir::Launch& launch);
ir::Body without_launch_order(const ir::Body& body);

// The same around roles: all threads wait before their roles begin, whatever of a tile's statements came first, as
// loaders run ahead of the others. Those that bring results to memory let the launches after begin when they are done,
// without roles the last statement does.
ir::Body order_around_roles(const ir::Launch& launch, const LaunchOrder& order, const ir::ProgramTables& program);

}  // namespace tilewright::passes
