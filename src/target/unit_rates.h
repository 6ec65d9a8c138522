// What the units of a multiprocessor of an H200 do in a clock, for models of time: the first row of machine.cpp, and
// timelines of the simulator. Those that are marked so are fitted to measurements
// (bench/results/2026-11-23-prices.json).
#pragma once

namespace tilewright::target {

constexpr double kClock = 1600;          // a microsecond, of an H200 under products (fitted; its limit is 1980)
constexpr double kMultiplyAdds = 2048;   // a clock, of 16-bit operands by wgmma (H100 white paper)
constexpr double kOfWarps = 0.5;         // of that, by mma.sync (fitted)
constexpr double kMultiplyAdds64 = 128;  // a clock, of float64 (H100 white paper)
constexpr double kPlain = 128;           // operations a clock, multiply-adds too (CUDA guide, throughput table)
constexpr double kSpecial = 16;          // exponentials and the like a clock (the same table)
constexpr double kConversions = 64;      // a clock (the same table)
constexpr double kSharedBytes = 128;     // a clock (the same)
constexpr double kL2Bytes = 56;          // a clock and multiprocessor, all at a time (fitted)
constexpr double kResultBytes = 64;      // a clock, of results that leave (fitted)

}  // namespace tilewright::target
