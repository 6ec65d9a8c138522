#include "simulator/tma_box.h"

#include <algorithm>

namespace tilewright::simulator {

namespace {

constexpr int64_t kChunk = 16;        // bytes
constexpr int64_t kMostExtent = 256;  // of a box
constexpr int64_t kMostDimensions = 5;
constexpr int64_t kSharedAlignment = 128;

int64_t count(const std::vector<int64_t>& extent) {
  int64_t n = 1;
  for (const int64_t e : extent) n *= e;
  return n;
}

}  // namespace

int64_t TmaBox::rows() const {
  int64_t n = 1;
  for (size_t d = 0; d + 1 < extent.size(); ++d) n *= extent[d];
  return n;
}

TmaRow TmaBox::row(int64_t number) const {
  TmaRow row;
  row.address = start + number * pitch_bytes();
  bool inside = true;
  for (size_t d = extent.size() - 1; d-- > 0; number /= extent[d]) {
    const int64_t index = min[d] + number % extent[d];
    inside = inside && index >= 0 && index < shape[d];
    row.first += index * strides[d];
  }
  row.first += min.back();
  if (!inside) return row;
  row.begin = std::clamp<int64_t>(-min.back(), 0, row_elements());
  row.end = std::clamp<int64_t>(shape.back() - min.back(), row.begin, row_elements());
  return row;
}

// A row that is less than what the swizzle moves chunks in leaves the rest of it as it is (seen on an H200: boxes of
// 16, 32 and 64 bytes a row, swizzled by 128).
int64_t TmaBox::pitch_bytes() const {
  const MemoryLayout* layout = shared->memory();
  const bool moves = layout && layout->swizzle().bits > 0;
  return moves ? std::max<int64_t>(row_bytes(), layout->swizzle().span()) : row_bytes();
}

uint64_t TmaBox::place(int64_t address) const {
  const MemoryLayout* layout = shared->memory();
  const int bits = layout ? layout->swizzle().bits : 0;
  const auto a = static_cast<uint64_t>(address);
  return a ^ ((a >> 7 & ((uint64_t{1} << bits) - 1)) << 4);
}

std::string TmaBox::fault() const {
  const char* name = global->source->name.c_str();
  if (global->type.storage_bits() % 8 != 0) return fmt::format("'{}' has elements of {}", name, global->type.name());
  if (extent.empty() || static_cast<int64_t>(extent.size()) > kMostDimensions)
    return fmt::format("'{}' has {} dimensions, not 1 to {}", name, extent.size(), kMostDimensions);
  if (row_elements() > kMostExtent) return run_fault();
  for (const int64_t e : extent)
    if (e < 1 || e > kMostExtent) return fmt::format("an extent of the box is {}, not 1 to {}", e, kMostExtent);
  // On chip the rows lie one after the other, whatever dimensions they run over outside.
  if (shared_extent.back() != row_elements() || count(shared_extent) != count(extent))
    return "the extents of its sides differ";
  if (row_bytes() % kChunk != 0) return fmt::format("a row of the box has {} bytes, no multiple of 16", row_bytes());
  if (min.back() * element_bytes() % kChunk != 0)
    return fmt::format("it begins at byte {} of rows of '{}', no multiple of 16", min.back() * element_bytes(), name);
  if (strides.back() != 1) return fmt::format("the elements of '{}' along its last dimension are no neighbours", name);
  for (size_t d = 0; d + 1 < strides.size(); ++d)
    if (shape[d] > 1 && strides[d] * element_bytes() % kChunk != 0)
      return fmt::format("dimension {} of '{}' has a stride of {} bytes, no multiple of 16", d, name,
                         strides[d] * element_bytes());
  if (reinterpret_cast<uintptr_t>(tensor) % kChunk != 0) return fmt::format("'{}' is not aligned to 16 bytes", name);
  return shared_fault();
}

// A run of memory as cp.async.bulk copies it, which knows no bounds.
std::string TmaBox::run_fault() const {
  const char* name = global->source->name.c_str();
  if (rows() != 1 || count(shared_extent) != row_elements() || shared_extent.back() != row_elements())
    return fmt::format("an extent of the box is {}, not 1 to {}, and it is no run", row_elements(), kMostExtent);
  for (size_t d = 0; d < extent.size(); ++d)
    if (min[d] < 0 || min[d] + extent[d] > shape[d])
      return fmt::format("a bulk copy reaches beyond dimension {} of '{}'", d, name);
  if (strides.back() != 1) return fmt::format("the elements of '{}' along its last dimension are no neighbours", name);
  if (row_bytes() % kChunk != 0) return fmt::format("a bulk copy has {} bytes, no multiple of 16", row_bytes());
  if (reinterpret_cast<uintptr_t>(tensor + row(0).first * element_bytes()) % kChunk != 0)
    return fmt::format("a bulk copy begins between pieces of 16 bytes of '{}'", name);
  const MemoryLayout* layout = shared->memory();
  if (layout && layout->swizzle().bits > 0) return "a bulk copy knows no swizzle";
  return start % kChunk != 0 ? "a bulk copy begins between pieces of 16 bytes of shared memory" : shared_fault();
}

// The box is one run of the layout, and the layout moves chunks as the hardware does.
std::string TmaBox::shared_fault() const {
  const char* name = shared->source->name.c_str();
  const MemoryLayout* layout = shared->memory();
  const Swizzle swizzle = layout ? layout->swizzle() : Swizzle{};
  if (!swizzle.is_hardware()) return fmt::format("'{}' has a swizzle that TMA does not know", name);
  if (swizzle.bits > 0 && row_bytes() > swizzle.span())
    return fmt::format("a row of the box has {} bytes, more than the {} in which the swizzle of '{}' moves chunks",
                       row_bytes(), swizzle.span(), name);
  if (start % kSharedAlignment != 0)
    return fmt::format("it begins at byte {} of shared memory, no multiple of {}", start, kSharedAlignment);
  // Offsets add up over the dimensions, so that it is enough to walk along each.
  const auto offset = [&](const std::vector<int64_t>& index) {
    if (layout) return layout->linear_offset(index);
    int64_t sum = 0;
    for (size_t d = 0; d < index.size(); ++d) sum += index[d] * shared->strides[d];
    return sum;
  };
  const int64_t corner = offset(shared_min);
  int64_t step = 1;
  const int64_t last = static_cast<int64_t>(shared_min.size()) - 1, pitch = pitch_bytes() / element_bytes();
  for (int64_t at = last; at >= 0; step = at == last ? pitch : step * shared_extent[static_cast<size_t>(at)], --at) {
    const auto d = static_cast<size_t>(at);
    std::vector<int64_t> index = shared_min;
    for (int64_t i = 0; i < shared_extent[d]; ++i, ++index[d])
      if (offset(index) - corner != i * step)
        return fmt::format("the box is not one run of '{}' in shared memory", name);
  }
  // Where the pattern of the swizzle begins: the slot, in whose last two dimensions the box stands.
  std::vector<int64_t> slot = shared_min;
  for (size_t d = slot.size() - std::min<size_t>(slot.size(), 2); d < slot.size(); ++d) slot[d] = 0;
  const int64_t first = start - (corner - offset(slot)) * element_bytes();
  if (first % swizzle.period() != 0)
    return fmt::format("a slot of '{}' begins at byte {} of shared memory; its swizzle wants a multiple of {}", name,
                       first, swizzle.period());
  return "";
}

}  // namespace tilewright::simulator
