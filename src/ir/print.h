// Programs as text (.tile): what a kernel engineer would write, and what ir/parse.h reads back. Equal programs print
// equal text, whatever their ids.
#pragma once
#include <string>

#include "ir/program.h"

namespace tilewright::ir {

struct PrintOptions {
  bool locations = false;  // after each statement, buffer and launch: @ "file":line:column
};

std::string print(const TileProgram& program, PrintOptions options = {});
std::string print(const LoopProgram& program, PrintOptions options = {});
std::string print(const ThreadProgram& program, PrintOptions options = {});

// Pieces for messages. Names are those of the tables, unchanged.
std::string print(const Expr& e, const ProgramTables& program);
std::string print(const Region& region, const ProgramTables& program);

}  // namespace tilewright::ir
