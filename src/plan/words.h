// The words of printed plans, by the values that they stand for: what prints them and what reads them agree.
#pragma once
#include <array>
#include <string>

namespace tilewright::plan {

inline constexpr std::array kWorkWords = {"one_tile", "persistent"};                               // Work::Kind
inline constexpr std::array kJobWords = {"load", "compute"};                                       // Role::Job
inline constexpr std::array kTakesWords = {"all_tiles", "tiles_in_turn", "iterations_in_turn"};    // Role::Takes
inline constexpr std::array kOrderWords = {"overlapped", "made_beside", "skewed", "alternating"};  // Order::How
inline constexpr std::array kStagingWords = {"whole", "chunks", "chunks_of_rows", "as_written", "straight"};  // Staging
inline constexpr std::array kNextTileWords = {" dealt", " drawn"};         // Work::drawn
inline constexpr std::array kBoxesWords = {"", " clipped", " unclipped"};  // Ring::Boxes, behind the others

// Behind the name of a tile whose halves of columns have rings of their own, by Ring::half + 1.
inline constexpr std::array kHalfWords = {"", "_left", "_right"};

template <size_t n, class Value>
const char* word(const std::array<const char*, n>& words, Value value) {
  return words.at(static_cast<size_t>(value));
}

}  // namespace tilewright::plan
