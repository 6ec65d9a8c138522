// Two ways to cut one index into digits, brought to common digits: the step under every question about two layouts.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tilewright {

// A digit of both cuts: part of factor `a` of the first (steps of a_step within that factor), and of factor `b` of the
// second.
struct Piece {
  int64_t extent = 1;
  int64_t weight = 1;  // one step of it, in the index
  int a = 0, b = 0;
  int64_t a_step = 1, b_step = 1;
};

// Extents slowest first, result fastest first. The slowest extent of either side may reach beyond the index, so it is
// cut as if it were as large as needed. Empty where a radix of one divides no radix of the other, such as 3 x 4 against
// 4 x 3.
std::optional<std::vector<Piece>> refine(std::span<const int64_t> a, std::span<const int64_t> b);

}  // namespace tilewright
