// Points of a Map that several threads run, each for its copy of a fragment: of their stores to memory one happens.
#pragma once
#include "passes/lower/lowering.h"

namespace tilewright::passes {

// Whether nothing but memory changes: one of the threads runs the point, the others have nothing to do. `in_memory`: of
// buffers whose elements threads share.
bool changes_memory_alone(const ir::Map& map, const ir::ProgramTables& program,
                          function_ref<bool(ir::BufferId)> in_memory);

// Whether threads that all run a point would read what another one stores, or has yet to store: the body reads memory
// that it changes, and not only what it stored there itself.
bool copies_would_meet(const ir::Map& map, const ir::ProgramTables& program,
                       function_ref<bool(ir::BufferId)> in_memory);

// The Map with names for the values that it stores and then reads: no thread asks memory for them.
ir::Map with_stored_values(const ir::Map& map, Lowering& l, function_ref<bool(ir::BufferId)> in_memory);

}  // namespace tilewright::passes
