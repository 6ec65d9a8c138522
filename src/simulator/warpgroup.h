// What the four warps of a warpgroup do together: the wgmmas that they issue, each in its own time but in one order,
// and the groups into which these are committed.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "interpreter/code.h"
#include "simulator/clocks.h"

namespace tilewright::simulator {

struct Warpgroup {
  static constexpr int64_t kWarps = 4;

  // A wgmma that not all warps have come by: what the first one found.
  struct Multiply {
    const interpreter::Step* step = nullptr;
    std::array<int64_t, 2> address{};  // of a and b in shared memory; -1: in registers
    std::vector<float> b;              // k rows of n
    std::vector<uint32_t> b_cells;     // the 16 bytes that it reads
  };
  std::deque<Multiply> under_way;
  uint64_t gone = 0;                      // that all warps have come by
  std::array<uint64_t, kWarps> issued{};  // by each warp
  std::vector<uint8_t> commits;           // by group: warps that committed it

  // Whether all warps have committed the group, which counts from 1.
  bool is_issued(Clock group) const { return group <= commits.size() && commits[group - 1] == kWarps; }
  void commit(Clock group) {
    if (commits.size() < group) commits.resize(group);
    ++commits[group - 1];
  }
};

}  // namespace tilewright::simulator
