// The one spelling of what can be written in several ways. First on every engine, so that all engines run the same
// program.
//
// Needs: a TileProgram that verifies.
// Leaves:
//   - with Options::contract, a * b + c of floats as one Fma: the left product where both sides are products, a - b * c
//   as
//     fma(-b, c, a). Never across a Let, nor for float8 and float4. Functions (ieee_fmul) are not touched.
//   - an If on a range of whole warps whose body holds tile ops or barriers as Role statements, one a side;
//   - a barrier of the block that every role comes to first as one of all threads (role_groups);
//   - a tile that nothing writes with a Fill of zeros, where the option zero_unwritten says so (fill_unwritten);
//   - a running maximum into a tile that nothing else writes with a Fill before it (running_reduces);
//   - a tile that a role fills again before another has read it as one tile for each filling (turn_tiles);
//   - a fragment that maps leave, each point at its own element, with one for each point, and maps that do nothing
//     beyond a fragment as large as it (grow_fragments);
//   - a fragment that holds what each thread has for itself as the threads' own memory (own_fragments);
//   - what turns of loops and points of maps say of a tensor's shape or place with names there (name_tensors);
//   - a Map that is all of another Map's body merged into it, and a Map's variables that have one value as 0;
//   - a serial loop whose turns are a Map each, of rows of a fragment, as one Map (merge_turns);
//   - conditions that the ranges of blocks, threads and loops decide as constants (known_conditions);
//   - branches in which threads of a warp share memory as several, between which they meet (part_branches);
//   - copies and fills of a thread's own memory that not all threads come to as loops of thread code;
//   - no If with a constant condition.
// Fails: never.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

ir::TileProgram canonicalize(ir::TileProgram program);

}  // namespace tilewright::passes
