// The code of threads, spoiled in one place.
#pragma once
#include <array>

#include "ir/program.h"

namespace tilewright::simulator {

enum class Way : uint8_t {
  DropBarrier,
  WarpForBlock,
  DropGuard,
  GuardOffByOne,
  ShiftStore,
  DropFence,
  DropArrive,
  DropWait,
  ShiftParity,
  SwapStage,
  SwapBarrier,
  HalveBytes,
  DropDrain,
  DeepenDrain,
  ReadDrain,
  DropCommit,
  ReleaseEarly,
  ShrinkCount,
  WrongSwizzle,
  NarrowCast,
};
inline constexpr std::array<const char*, 20> kWays = {"barrier dropped",
                                                      "block barrier made one of the warp",
                                                      "guard dropped",
                                                      "guard off by one",
                                                      "store shifted",
                                                      "fence dropped",
                                                      "arrival dropped",
                                                      "wait dropped",
                                                      "parity shifted",
                                                      "stage swapped",
                                                      "barrier swapped",
                                                      "bytes halved",
                                                      "drain dropped",
                                                      "drain one deeper",
                                                      "drain that waits for reading alone",
                                                      "commit dropped",
                                                      "slot released before the drain",
                                                      "arrivals one less",
                                                      "wrong swizzle",
                                                      "cast made narrower"};

// In how many places a program can be spoiled this way.
int count_places(const ir::ThreadProgram& program, Way way);
ir::ThreadProgram mutant(const ir::ThreadProgram& program, Way way, int place);

}  // namespace tilewright::simulator
