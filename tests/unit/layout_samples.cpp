#include "unit/layout_samples.h"

#include <algorithm>

namespace tilewright {

void for_each_index(const std::vector<int64_t>& shape, const std::function<void(const Index&)>& f) {
  Index index(shape.size(), 0);
  for (;;) {
    f(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

FragmentLayout LayoutSamples::fragment(bool powers_of_two, bool copies) {
  const int64_t rank = upto(3);
  FragmentLayout::Dims dims(rank);
  std::vector<Copies> extra;
  int64_t registers = 1, lanes = 1, warps = 1, ctas = 1;
  const auto stride_of = [&](int64_t& next, int64_t extent, int64_t end) -> int64_t {
    int64_t stride = next;
    if (!powers_of_two && upto(8) == 1) ++stride;  // a gap
    if (stride * extent > end) return 0;
    next = stride * extent;
    return stride;
  };
  for (int64_t count = upto(6); count > 0; --count) {
    const int64_t extent = powers_of_two ? int64_t{1} << upto(3) : upto(6);
    Factor f{extent, static_cast<Home>(upto(5) - 1), 1};
    if (f.home == Home::Warpgroup) f.home = Home::Lane;  // warpgroups come from warps, by the canonical form
    int64_t& next = f.home == Home::Register ? registers
                    : f.home == Home::Lane   ? lanes
                    : f.home == Home::Warp   ? warps
                                             : ctas;
    f.stride = stride_of(next, extent, f.home == Home::Lane ? 32 : f.home == Home::Warp ? 16 : 64);
    if (f.stride == 0) continue;
    if (copies && f.home != Home::Register && upto(4) == 1) {
      extra.push_back({f, upto(3) == 1 ? std::optional(static_cast<Combine>(upto(3) - 1)) : std::nullopt});
    } else {
      std::vector<Factor>& dim = dims[upto(rank) - 1];
      dim.insert(dim.begin() + (upto(static_cast<int64_t>(dim.size()) + 1) - 1), f);
    }
  }
  std::vector<int64_t> shape;
  for (const std::vector<Factor>& dim : dims) {
    int64_t covered = 1;
    for (const Factor& f : dim) covered *= f.extent;
    shape.push_back(upto(2) == 1 ? covered : std::max<int64_t>(1, covered - (powers_of_two ? 0 : upto(3))));
  }
  if (!FragmentLayout::fault(shape, dims, extra).empty())
    return fragment(powers_of_two, copies);  // gaps that do not nest
  return FragmentLayout(shape, dims, extra);
}

MemoryLayout LayoutSamples::memory(const std::vector<int64_t>& shape, bool swizzled) {
  const int bits = 8 << (upto(3) - 1);
  std::vector<int> order(shape.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int>(d);
  std::shuffle(order.begin(), order.end(), random_);
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (int d : order) {
    strides[d] = stride;
    stride = stride * shape[d] + (upto(4) == 1 ? upto(4) * 4 : 0);
  }
  const Swizzle swizzle = swizzled ? Swizzle{static_cast<int>(upto(3)), 4, 3} : Swizzle{};
  return MemoryLayout(shape, strides, bits, swizzle);
}

}  // namespace tilewright
