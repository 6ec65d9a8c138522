// Loops of a thread's code that take turns with the loop over the threads.
#pragma once
#include "passes/lower/lowering.h"

namespace tilewright::passes {

// Does each iteration of a thread's loop touch elements beside those of the neighbouring threads, and far from those of
// its other iterations? `thread_vars` gives the variables of the thread with a linear index.
bool strides_past_neighbours(const ir::For& f, function_ref<ir::Substitution(int64_t)> thread_vars,
                             const ir::ProgramTables& program);

// The greatest (or least) value that an integer expression has over the threads of the launch, as one that all of them
// agree on; empty where that cannot be said.
ir::Expr extreme_over_threads(const ir::Expr& e, bool greatest, const ir::Launch& launch,
                              function_ref<bool(const ir::Expr&)> is_uniform);

}  // namespace tilewright::passes
