// Boxes of fragments that Maps access, and what is left of a layout when dimensions go.
#pragma once
#include <optional>

#include "analysis/accessed.h"
#include "layout/algebra.h"

namespace tilewright::passes {

// The part of a fragment's layout that a Map over `points` accesses, and its first register. None: the border cuts
// through what a thread holds, or not all threads hold some of it.
std::optional<FragmentSlice> box_of(const FragmentLayout& layout, const analysis::Followed& box,
                                    const std::vector<int64_t>& points);

// What a reduction of tiles that were dealt this way leaves: the layout without the dimension, whole in every copy.
FragmentLayout reduced(const FragmentLayout& layout, int dim);

}  // namespace tilewright::passes
