// Whether two tensors of a call share memory.
#pragma once
#include "tilewright/tensor.h"

namespace tilewright::runtime {

// The bytes from the first of any element of the tensor to the last, which there must be.
struct Extent {
  uintptr_t begin = 0, end = 0;
  bool meets(const Extent& o) const { return begin < o.end && o.begin < end; }
};
Extent extent_of(const NDArray& tensor);

// Do the two share some bytes, but not all? Elements of columns or rows that lie between each other's do not meet.
// Where the strides make that a long search, the answer is no.
bool overlap_in_part(const NDArray& a, const NDArray& b);

}  // namespace tilewright::runtime
