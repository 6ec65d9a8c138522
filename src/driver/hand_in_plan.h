// Plans that are handed in: .plan texts, as `tilewright compile --stage plan` prints them.
#pragma once
#include <string>

#include "ir/program.h"
#include "tilewright/program.h"

namespace tilewright {

// The program with lines of its launches' plans fixed. A line `launch NAME` says of which launch the next are; where
// the program has one launch, it may be left out. `#` begins a comment. CompileError (TW8206) for a launch that the
// program has not, and for lines that no plan has.
ir::TileProgram with_plan(ir::TileProgram program, const std::string& text);

Program with_plan(const Program& program, const std::string& text);

// The same for the lines that are in the program: what a plan cannot say is known on every engine.
void check_plans(const ir::TileProgram& program);

}  // namespace tilewright
