// What can be made of a fragment layout: tiles of it, slices, other shapes, reductions. All return new layouts.
#pragma once
#include "layout/fragment.h"

namespace tilewright {

// `count` more of the layout along a dimension, as its slowest digit, at the next free place of a home: an
// instruction's atom becomes a tile. After repeat in registers the next repeat strides over all of them. The shape
// grows by `count` times.
FragmentLayout repeat(const FragmentLayout& layout, int dim, int64_t count, Home home);

// `count` copies at the next free place of a home that is no register.
FragmentLayout replicate(const FragmentLayout& layout, int64_t count, Home home);

// The same places with a smaller or larger shape, within what the factors cover; what is outside is padding.
FragmentLayout with_shape(const FragmentLayout& layout, std::vector<int64_t> shape);

// Dimension d of the result is dimension order[d] of `layout`.
FragmentLayout permute(const FragmentLayout& layout, const std::vector<int>& order);

// The same elements in row-major order under another shape. Empty where the factors do not cut at the new borders, or
// where a dimension other than the slowest of a group has padding.
std::optional<FragmentLayout> reshape(const FragmentLayout& layout, const std::vector<int64_t>& shape);

// Indices [begin, begin + extent) of a dimension: a layout of that shape, and the place of its first element. A digit
// that the slice fixes is gone from the layout; if it was a thread's, only those threads hold the slice. Empty where
// the borders cut through a factor.
struct FragmentSlice {
  FragmentLayout layout;
  Place base;
};
std::optional<FragmentSlice> slice(const FragmentLayout& layout, int dim, int64_t begin, int64_t extent);

// A dimension of extent 1 in front of dimension d, held nowhere.
FragmentLayout insert_dim(const FragmentLayout& layout, int d);

// A dimension is gone, as after Reduce: its registers were combined within the thread and close up; its other digits
// become copies: partial results if `partial` is given (nothing has crossed threads yet), else copies of the whole
// result. Places of padding must have held the identity of the reduction.
FragmentLayout remove_dim(const FragmentLayout& layout, int d, std::optional<Combine> partial = {});

// All partial copies are whole: what combining across threads leaves behind.
FragmentLayout combined(const FragmentLayout& layout);

// Registers numbered without gaps, in the order they have. What remove_dim and slices of registers leave.
FragmentLayout compact_registers(const FragmentLayout& layout);

// The same elements in the same threads; only the numbering of the registers may differ.
bool equal_up_to_registers(const FragmentLayout& a, const FragmentLayout& b);

}  // namespace tilewright
