// A user's layout function becomes a layout: evaluated at every index, fitted to modes (and an XOR swizzle in memory),
// refused where it is anything else.
#pragma once
#include "layout/fragment.h"
#include "layout/memory.h"
#include "support/function_ref.h"

namespace tilewright {

// Where the user's function puts an element.
struct UserPlace {
  int64_t thread = 0;
  int64_t reg = 0;
};
using FragmentFunction = function_ref<UserPlace(std::span<const int64_t> index, int64_t copy)>;
// The position of an element; of several numbers, the first is slowest, and each ranges from 0 to its largest value.
using MemoryFunction = function_ref<std::vector<int64_t>(std::span<const int64_t> index)>;

// TW1085 at `location`, naming the first index that deviates, where no layout of this kind is the function.
FragmentLayout fit_fragment(const std::vector<int64_t>& shape, int64_t threads, int64_t copies,
                            FragmentFunction function, const SourceLocation& location = {});
MemoryLayout fit_memory(const std::vector<int64_t>& shape, int element_bits, MemoryFunction function,
                        const SourceLocation& location = {});

}  // namespace tilewright
