// Which blocks of a launch form a cluster.
#pragma once
#include <algorithm>
#include <array>

#include "interpreter/code.h"

namespace tilewright::interpreter {

// The blocks of a launch, cluster by cluster.
class Clusters {
 public:
  explicit Clusters(const LaunchCode& code) {
    std::copy(std::begin(code.grid), std::end(code.grid), grid_.begin());
    const std::vector<int64_t>& extents = code.launch->cluster;
    for (size_t d = 0; d < extents.size() && d < 3; ++d) extent_[d] = extents[d];
    for (size_t d = 0; d < 3; ++d) fits_ = fits_ && grid_[d] % extent_[d] == 0;
  }
  bool fits() const { return fits_; }
  int64_t size() const { return extent_[0] * extent_[1] * extent_[2]; }
  // The linear number of a cluster's block.
  int64_t block(int64_t cluster, int64_t rank) const {
    std::array<int64_t, 3> at{};
    for (size_t d = 0; d < 3; ++d) {
      const int64_t clusters = grid_[d] / extent_[d];
      at[d] = cluster % clusters * extent_[d] + rank % extent_[d];
      cluster /= clusters, rank /= extent_[d];
    }
    return at[0] + grid_[0] * (at[1] + grid_[1] * at[2]);
  }

 private:
  std::array<int64_t, 3> grid_{}, extent_{1, 1, 1};
  bool fits_ = true;
};

}  // namespace tilewright::interpreter
