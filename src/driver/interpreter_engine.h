// The reference interpreter behind an Executable.
#pragma once
#include "interpreter/interpreter.h"
#include "ir/program.h"
#include "runtime/executable.h"

namespace tilewright {

// The program's symbols are in the order of the plan.
std::unique_ptr<runtime::Callee> interpreter_callee(ir::TileProgram program);
// What the interpreter and the simulator are called with.
interpreter::Binding binding_of(const ir::ProgramTables& program, const runtime::BoundCall& call);

}  // namespace tilewright
