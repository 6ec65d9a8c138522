// What happens when a fragment meets memory: how wide its accesses are, which banks they hit, which matrix instructions
// fit.
#pragma once
#include "layout/fragment.h"
#include "layout/memory.h"

namespace tilewright {

// A digit of the fragment and what one step of it is in memory, in elements before the swizzle.
struct AccessDigit {
  int dim = 0;
  int64_t extent = 1, weight = 1;  // of the index of dim
  Home home = Home::Register;
  int64_t stride = 1;  // in units of the home
  int64_t offset = 0;  // elements in memory
};

// The digits of a fragment refined by the modes of memory, dimension by dimension, fastest first. Empty where the
// radices do not fit each other.
std::optional<std::vector<AccessDigit>> access_digits(const FragmentLayout& fragment, const MemoryLayout& memory);

// The widest access of one thread. `elements` registers, steps apart as `registers` says, are consecutive in memory and
// aligned.
struct VectorAccess {
  int64_t elements = 1;
  std::vector<AccessDigit>
      registers;  // their digits, fastest in memory first; the product of the extents is `elements`
  int64_t bytes(int element_bits) const { return elements * element_bits / 8; }
};

// base_alignment: bytes that the first element is known to be aligned to. Elements are a power of two, at most
// max_bytes. A vector never straddles the end of the shape, so one guard serves it.
VectorAccess vector_access(const FragmentLayout& fragment, const MemoryLayout& memory, int64_t base_alignment = 16,
                           int64_t max_bytes = 16);

}  // namespace tilewright
