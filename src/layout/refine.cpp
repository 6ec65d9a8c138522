#include "layout/refine.h"

#include <algorithm>

namespace tilewright {
namespace {

// The cut that is being read, from its fastest factor.
struct Cursor {
  std::span<const int64_t> extents;
  int at;
  int64_t left, step = 1;

  explicit Cursor(std::span<const int64_t> list)
      : extents(list), at(static_cast<int>(list.size()) - 1), left(list.empty() ? 1 : list.back()) {}
  bool is_slowest() const { return at == 0; }
  void take(int64_t extent) {
    left /= extent, step *= extent;
    if (left > 1) return;
    --at, step = 1;
    left = at >= 0 ? extents[at] : 1;
  }
};

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

std::optional<std::vector<Piece>> refine(std::span<const int64_t> a, std::span<const int64_t> b) {
  std::vector<Piece> pieces;
  Cursor x(a), y(b);
  for (int64_t weight = 1; x.at >= 0 && y.at >= 0;) {
    if (x.is_slowest() && y.is_slowest()) {
      x.left = y.left = std::max(x.left, y.left);
    } else if (x.is_slowest()) {
      x.left = round_up(x.left, y.left);
    } else if (y.is_slowest()) {
      y.left = round_up(y.left, x.left);
    }
    const int64_t extent = std::min(x.left, y.left);
    if (x.left % extent != 0 || y.left % extent != 0) return std::nullopt;
    pieces.push_back({extent, weight, x.at, y.at, x.step, y.step});
    weight *= extent;
    x.take(extent), y.take(extent);
  }
  return pieces;
}

}  // namespace tilewright
