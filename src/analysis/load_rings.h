// Rings: which tiles of a launch a loader can bring, by TMA or by cp.async, and which of them come together.
#pragma once
#include <algorithm>
#include <set>

#include "ir/program.h"

namespace tilewright::analysis {

struct FoundRing {
  std::vector<ir::Stmt> copies;             // in one body: copies, and maps that gather what cp.async brings
  std::vector<ir::BufferId> tiles;          // as the program has them
  std::vector<ir::Stmt> rows = {};          // of the same body: what says which rows maps gather
  std::vector<ir::Stmt> rests = {};         // of the launch: fills of what no copy brings of the tiles
  std::vector<const ir::For*> nest;         // the loops around, outermost first
  const ir::StmtNode* first_use = nullptr;  // statements of the same body
  const ir::StmtNode* last_use = nullptr;
  int64_t slots = 1, bytes = 0;    // as whoever asks decides; bytes of a slot
  int64_t by_tma = 0;              // that TMA brings for one: of a tile that is filled in part, less
  bool ahead = false;              // of a pipelined loop: the loader runs ahead
  bool counted = false;            // the innermost loop has other extents in other turns of those around it, or
  const ir::Body* gate = nullptr;  // a condition's side, in whose turns alone it is filled: fills are counted there
  bool has(const ir::Stmt& s) const {
    return std::any_of(copies.begin(), copies.end(), [&](const ir::Stmt& c) { return &*c == &*s; });
  }
  bool brings(ir::BufferId tile) const { return std::ranges::find(tiles, tile) != tiles.end(); }
  bool gathers() const {  // the loader's threads bring some of it
    return std::ranges::any_of(copies, [](const ir::Stmt& s) { return !s.as<ir::Copy>(); });
  }
};

// What is done in a turn of its loop that fills it.
inline const ir::Body& turn_of(const FoundRing& r) { return r.gate ? *r.gate : r.nest.back()->body; }

// Whether the statement is a ring's, which the loader has.
bool is_moved(const std::vector<FoundRing>& rings, const ir::Stmt& s);
bool holds_copies(const std::vector<FoundRing>& rings, const ir::Stmt& s);

struct FoundRings {
  std::vector<FoundRing> rings;
  std::set<ir::VarId> results;  // values that only the computing threads have
  // What keeps the computing threads from leaving all loads to a loader: they would wait for a pipelined loop's tile.
  std::string left;
};
// Of a canonical program. Rings point into the launch. `walks_tiles`: were the launch's body that of a loop over tiles.
FoundRings find_rings(const ir::ProgramTables& program, const ir::Launch& launch, bool walks_tiles = false);
// Whether the loader, which runs the loops, names and conditions around the copies, reads global memory for them.
bool loader_reads_memory(const ir::ProgramTables& program, const ir::Launch& launch, const FoundRings& found);

// Whether a tensor's address, shape or strides are computed in the launch.
bool tensors_stand_by_names(const ir::ProgramTables& program, const ir::Launch& launch);

// Why TMA cannot bring it; what has one dimension comes as a row.
std::string ring_misfit(const ir::ProgramTables& program, const ir::Copy& copy);

}  // namespace tilewright::analysis
