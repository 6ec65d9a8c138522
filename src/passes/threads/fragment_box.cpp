#include "passes/threads/fragment_box.h"

namespace tilewright::passes {

using analysis::Followed;

std::optional<FragmentSlice> box_of(const FragmentLayout& layout, const Followed& box,
                                    const std::vector<int64_t>& points) {
  FragmentSlice out{layout, {}};
  for (size_t d = 0; d < box.dims.size(); ++d) {
    const int64_t extent = box.dims[d] < 0 ? 1 : points[static_cast<size_t>(box.dims[d])];
    if (box.first[d] == 0 && extent == layout.shape()[d]) continue;
    const auto part = slice(out.layout, static_cast<int>(d), box.first[d], extent);
    if (!part || part->base.thread != 0 || part->base.cta != 0 || part->layout.threads() != layout.threads())
      return std::nullopt;
    out.layout = part->layout, out.base.reg += part->base.reg;
  }
  return out;
}

FragmentLayout reduced(const FragmentLayout& layout, int dim) { return combined(remove_dim(layout, dim)); }

}  // namespace tilewright::passes
