// Copies to the blocks of a cluster that wait.
#pragma once
#include "ir/program.h"

namespace tilewright::passes {

// Where a copy names the blocks that get it but no barrier, the block of the lowest bit copies for all of them by TMA,
// the others of the cluster for themselves, and each waits until its own has come. Clusters whose blocks do not concern
// each other are dropped: they are a matter of speed. Copies that tell a barrier and follow each other:
// - small ones become stores of the queue st_async, whose barrier expects their bytes, where nothing else of the launch
//   could be read by who waits there: st_async orders its own bytes alone;
// - others are all written before any tells of itself, so that the threads meet once, behind a fence for all memory.
// Needs canonical tile programs; leaves them so.
ir::TileProgram materialize_cluster_copies(ir::TileProgram program);

}  // namespace tilewright::passes
