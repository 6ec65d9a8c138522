// Statements of a loop that bring tiles which cp.async can bring before their turn.
#pragma once
#include "ir/program.h"

namespace tilewright::analysis {

// A statement of a loop that fills a tile of shared memory.
struct BroughtTile {
  size_t at = 0;
  ir::BufferId tile;
  std::optional<size_t> rows = {};  // the statement that says which rows are gathered
};

// Statement `at` of the loop's body, if it is a Copy or a Map that fills a tile from global memory by whole 16 bytes,
// as they lie there, or zeros, and where they lie is known before the turn: by what the loop does not write, or by a
// fragment that another Map fills with that alone.
std::optional<BroughtTile> brought_tile(const ir::ProgramTables& program, const ir::Launch& launch, const ir::For& loop,
                                        size_t at);

// What keeps a buffer from being a tile of a ring of the loop's, wherever it comes from; empty: nothing does.
std::string no_tile_of(const ir::ProgramTables& program, const ir::Launch& launch, const ir::For& loop,
                       ir::BufferId tile);

// How often statements of a body write the buffer.
int writes_of(const ir::Body& body, ir::BufferId id, const ir::ProgramTables& program);

}  // namespace tilewright::analysis
