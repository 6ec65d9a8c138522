// What it takes to get one fragment layout from another: nothing, other registers, shuffles, or a trip through shared
// memory.
#pragma once
#include "layout/fragment.h"

namespace tilewright {

// At every thread `have` holds at least what `want` holds there, so no data moves between threads. Exact where the
// radices of the two fit each other; otherwise false, which is the safe answer.
bool contains(const FragmentLayout& have, const FragmentLayout& want);

enum class ConversionKind : uint8_t {
  Same,       // every element is in its register already (of the registers that `to` names)
  Registers,  // other registers of the same thread; where the register depends on the thread, a select
  Shuffle,    // within warps, by `steps`
  Shared,     // through shared memory, with a barrier over `scope`
};
std::span<const char* const> enum_names(ConversionKind);

// Who exchanges data through shared memory.
enum class ExchangeScope : uint8_t { Warp, Warpgroup, Block, Cluster };
std::span<const char* const> enum_names(ExchangeScope);

// One step of a conversion by shuffles, from the layout before it to `after`.
struct ShuffleStep {
  enum class Kind : uint8_t {
    Combine,   // partial results of lanes that differ in lane_bit: shuffle by xor, then `combine`
    Select,    // lanes that differ in lane_bit hold the same registers: each keeps one half; moves nothing
    Exchange,  // swaps lane_bit with one bit of the register: a shuffle by xor of one register in two
    Permute,   // every register once, from lane source_lane[lane]
    Gather,    // lanes that differ in lane_bit tell each other all they have: registers double
  };
  Kind kind = Kind::Select;
  int lane_bit = 0;
  std::array<uint8_t, 32> source_lane{};  // Permute
  Combine combine = Combine::Sum;         // Combine
  FragmentLayout after;
  int64_t shuffles = 0;  // of 32-bit words, by each warp
};

struct Conversion {
  ConversionKind kind = ConversionKind::Same;
  ExchangeScope scope = ExchangeScope::Warp;  // Shared
  std::vector<ShuffleStep> steps;             // Shuffle; what they leave is contained in the last one's `after`
  // Combine needed across warps as well (Shared): copies that are partial there.
  bool combines = false;
  int64_t cost = 0;  // about the cycles of one warp, to compare conversions with each other
};

// From `from` to `to`, of one shape. Partial results become whole where `to` has copies. An internal error where `to`
// is partial in other ways than `from`.
Conversion conversion(const FragmentLayout& from, const FragmentLayout& to, int element_bits);

}  // namespace tilewright
