// What the accesses of a warp cost on the memories of a GPU: wavefronts of shared memory, sectors of global memory.
#pragma once
#include <cstdint>
#include <span>

namespace tilewright::simulator {

// Of one line of the source, all warps and blocks together.
struct Traffic {
  int64_t shared_accesses = 0;  // of warps
  // A wavefront serves each of the 32 banks of 4 bytes once; without conflicts an access of up to 4 bytes a lane takes
  // one, of 8 two and of 16 four, if all lanes take part.
  int64_t shared_wavefronts = 0, shared_ideal = 0;
  int64_t global_accesses = 0;
  int64_t global_sectors = 0;               // of 32 bytes
  int64_t global_ideal = 0;                 // sectors that the bytes would fill if they stood side by side
  int64_t bytes_moved = 0, bytes_used = 0;  // whole sectors; of those, what a lane asked for
  int64_t atomics = 0;                      // accesses of warps, of either memory
  int64_t barriers = 0;                     // arrivals of warps

  Traffic& operator+=(const Traffic& other);
};

// One access of a warp: the bit address of each lane that takes part, and the bits that each moves.
void add_shared_access(Traffic& traffic, std::span<const uint64_t> addresses, int64_t bits);
void add_global_access(Traffic& traffic, std::span<const uint64_t> addresses, int64_t bits);
// A row of a TMA copy: `bits` from a bit address on.
void add_global_run(Traffic& traffic, uint64_t address, uint64_t bits);

}  // namespace tilewright::simulator
