#pragma once
#include <cstdint>

namespace tilewright {

// A dimension that a call decides leaves this much room below the end of its type, so that rounding it up to whole
// tiles does not wrap around: calls with more are refused, and compiled texts count on it.
inline constexpr int64_t kSymbolRoom = 1 << 16;

}  // namespace tilewright
