// Rings that a loader role fills by TMA while the program's own threads compute.
#pragma once
#include "ir/program.h"
#include "target/gpu.h"

namespace tilewright::passes {

// What is decided about one launch.
struct RingPlan {
  struct Ring {  // tiles that are brought and given back together
    std::vector<std::string> tiles;
    int64_t slots = 1, bytes = 0;  // of a slot
  };
  std::vector<Ring> rings;
  int64_t loader_registers = 0, math_registers = 0;  // 0: as they come
  std::string why_not;                               // no loader role
  bool specialized() const { return why_not.empty(); }
};

// Launches with a gemm whose operands TMA can bring get one more warpgroup, one warp of which loads: rings of slots
// with mbarriers `full` and `empty`, written as the statements that users write. `max_slots` cuts the program's stages.
// Needs canonical tile programs; leaves them so. What is not done is said in `plans`, one a launch.
struct TmaRings {
  ir::TileProgram program;
  std::vector<RingPlan> plans;
};
TmaRings materialize_tma_rings(ir::TileProgram program, const target::GpuTarget& target, int64_t max_slots);

}  // namespace tilewright::passes
