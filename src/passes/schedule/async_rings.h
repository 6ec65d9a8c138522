// Pipelined loops by cp.async: the copies from global to shared memory at the head of the loop run ahead of the rest by
// as many iterations as the ring has slots but one.
#pragma once
#include <set>

#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// Every pipelined loop of more than one stage whose leading copies fill whole shared buffers that nothing else writes,
// or whose maps gather rows into such: those buffers get a slot a stage, and Copy, Store, Commit and Drain of the queue
// cp_async stand where the hardware does them. Which rows a map gathers, and elements that say where a copy reads, are
// read a turn before. Other pipelined loops stay, and run one turn after the other; `notes` says why.
struct AsyncRings {
  ir::TileProgram program;
  std::vector<std::pair<ir::LocationId, std::string>> notes;
  std::set<size_t> gathering = {};  // launches with rings of maps, or of copies whose places are read from memory
};
// `without`: launches in which those get no rings. Where the target has room for
// another slot of all blocks at once, rings have it.
AsyncRings materialize_async_rings(ir::TileProgram program, const std::set<size_t>& without = {},
                                   const target::GpuTarget* target = nullptr);

// A loop over all tiles of a grid, whose variable is a tile's number: each block draws some of them, and its leading
// copies run ahead, by TMA, as far as there are slots (the loop's stages). Why the loop is none of that kind, or
// nothing.
std::string draw_tiles(ir::TileProgram& program, ir::Launch& launch, const ir::For& tiles, const ir::Expr& blocks,
                       const ir::Expr& block, ir::Body& out);

}  // namespace tilewright::passes
