// What must hold for every program of a level. Passes and engines rely on it and do not check again. That tile ops
// stand under uniform control is checked by analysis/collectives.h, because it takes an analysis and holds only after
// canonicalize.
#pragma once
#include <vector>

#include "ir/program.h"

namespace tilewright::ir {

// All findings, in the order of the program; empty: valid.
std::vector<Diagnostic> verify(const TileProgram& program);
std::vector<Diagnostic> verify(const LoopProgram& program);
std::vector<Diagnostic> verify(const ThreadProgram& program);

// Throws if there is a finding. Without a pass: a CompileError with the first finding and notes on the others. After a
// pass it is our mistake: an InternalError that names the pass.
void check_valid(const TileProgram& program, const char* after_pass = nullptr);
void check_valid(const LoopProgram& program, const char* after_pass = nullptr);
void check_valid(const ThreadProgram& program, const char* after_pass = nullptr);
// The same for findings made elsewhere.
void throw_findings(const std::vector<Diagnostic>& findings, const char* after_pass);

}  // namespace tilewright::ir
