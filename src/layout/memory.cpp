#include "layout/memory.h"

#include <algorithm>
#include <bit>

namespace tilewright {
namespace {

std::vector<Mode> canonical(const std::vector<Mode>& modes) {
  std::vector<Mode> out;
  for (const Mode& m : modes) {
    if (m.extent == 1) continue;
    if (!out.empty() && out.back().stride == m.stride * m.extent)
      out.back() = {out.back().extent * m.extent, m.stride};
    else
      out.push_back(m);
  }
  return out;
}

int64_t round_up(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// The largest offset of any index up to `top`: either all digits are those of top, or one is less and all below are
// free.
int64_t farthest(const std::vector<Mode>& modes, int64_t top) {
  int64_t weight = 1, free = 0, best = 0, tight = 0;
  for (const Mode& m : modes) weight *= m.extent, free += (m.extent - 1) * m.stride;
  for (const Mode& m : modes) {
    weight /= m.extent;
    free -= (m.extent - 1) * m.stride;
    const int64_t digit = top / weight;
    top %= weight;
    if (digit > 0) best = std::max(best, tight + (digit - 1) * m.stride + free);
    tight += digit * m.stride;
  }
  return std::max(best, tight);
}

MemoryLayout::Dims one_mode_each(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  MemoryLayout::Dims dims;
  for (size_t d = 0; d < shape.size(); ++d) dims.push_back({{shape[d], strides[d]}});
  return dims;
}

}  // namespace

Swizzle hardware_swizzle(int64_t row_bytes) {
  switch (row_bytes) {
    case 32: return {1, 4, 3};
    case 64: return {2, 4, 3};
    case 128: return {3, 4, 3};
    default: return {};
  }
}

std::string MemoryLayout::fault(const std::vector<int64_t>& shape, const Dims& dims, int64_t element_bits,
                                Swizzle swizzle) {
  if (shape.size() != dims.size()) return fmt::format("{} extents for {} dimensions", shape.size(), dims.size());
  if (element_bits < 1 || element_bits > 128 || !std::has_single_bit(static_cast<uint64_t>(element_bits)))
    return fmt::format("an element of {} bits", element_bits);
  if (swizzle.bits < 0 || swizzle.base < 0 || swizzle.shift < swizzle.bits ||
      swizzle.bits + swizzle.base + swizzle.shift > 30)
    return fmt::format("the swizzle ({}, {}, {}) reads what it writes, or leaves 30 bits", swizzle.bits, swizzle.base,
                       swizzle.shift);
  if (swizzle.bits > 0 && (int64_t{8} << swizzle.base) < element_bits) return "the swizzle tears elements apart";
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t covered = 1;
    for (const Mode& m : dims[d]) {
      if (m.extent < 1 || m.stride < 0) return fmt::format("the mode {}:{} is not positive", m.extent, m.stride);
      covered *= m.extent;
    }
    if (shape[d] < 1 || covered < shape[d])
      return fmt::format("the modes of dimension {} cover {} of {} elements", d, covered, shape[d]);
  }
  return "";
}

MemoryLayout::MemoryLayout() = default;
MemoryLayout::MemoryLayout(const MemoryLayout&) = default;
MemoryLayout::MemoryLayout(MemoryLayout&&) noexcept = default;
MemoryLayout& MemoryLayout::operator=(const MemoryLayout&) = default;
MemoryLayout& MemoryLayout::operator=(MemoryLayout&&) noexcept = default;
MemoryLayout::~MemoryLayout() = default;
MemoryLayout::MemoryLayout(std::vector<int64_t> shape, Dims dims, int element_bits, Swizzle swizzle) {
  const std::string wrong = fault(shape, dims, element_bits, swizzle);
  check_internal(wrong.empty(), "no memory layout: {}", wrong);
  shape_ = std::move(shape);
  for (const std::vector<Mode>& dim : dims) dims_.push_back(canonical(dim));
  element_bits_ = element_bits;
  if (swizzle.bits > 0) swizzle_ = swizzle;
}

MemoryLayout::MemoryLayout(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, int element_bits,
                           Swizzle swizzle)
    : MemoryLayout(shape, one_mode_each(shape, strides), element_bits, swizzle) {}

MemoryLayout MemoryLayout::row_major(const std::vector<int64_t>& shape, int element_bits) {
  return padded(shape, element_bits, 0);
}

MemoryLayout MemoryLayout::padded(const std::vector<int64_t>& shape, int element_bits, int64_t pad_bytes) {
  check_internal(pad_bytes * 8 % element_bits == 0, "a pad of {} bytes holds no whole elements", pad_bytes);
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * shape[d] + (d + 1 == shape.size() ? pad_bytes * 8 / element_bits : 0);
  return MemoryLayout(shape, strides, element_bits);
}

MemoryLayout MemoryLayout::panels(const std::vector<int64_t>& shape, int element_bits, int64_t span_bytes) {
  check_internal(shape.size() >= 2, "panels need two dimensions");
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  const int64_t width = span_bytes * 8 / element_bits, count = (columns + width - 1) / width;
  // Panels start at whole patterns of eight rows.
  const int64_t panel = round_up(rows, 8) * width;
  Dims dims(shape.size());
  dims[shape.size() - 1] = {{count, panel}, {width, 1}};
  dims[shape.size() - 2] = {{rows, width}};
  int64_t stride = panel * count;
  for (size_t d = shape.size() - 2; d-- > 0; stride *= shape[d]) dims[d] = {{shape[d], stride}};
  return MemoryLayout(shape, std::move(dims), element_bits, hardware_swizzle(span_bytes));
}

int64_t MemoryLayout::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape_) count *= extent;
  return count;
}

int64_t MemoryLayout::bytes() const {
  int64_t last = 0;
  for (int d = 0; d < rank(); ++d) last += farthest(dims_[d], shape_[d] - 1);
  return round_up(((last + 1) * element_bits_ + 7) / 8, swizzle_.span());
}

int64_t MemoryLayout::alignment() const { return std::max<int64_t>(16, swizzle_.period()); }

bool MemoryLayout::is_injective() const {
  std::vector<Mode> modes;
  for (const std::vector<Mode>& dim : dims_) modes.insert(modes.end(), dim.begin(), dim.end());
  std::sort(modes.begin(), modes.end(), [](const Mode& a, const Mode& b) { return a.stride < b.stride; });
  int64_t reach = 0;
  for (const Mode& m : modes) {
    if (m.stride <= reach) return false;
    reach += (m.extent - 1) * m.stride;
  }
  return true;
}

int64_t MemoryLayout::linear_offset(std::span<const int64_t> index) const {
  int64_t offset = 0;
  for (int d = 0; d < rank(); ++d) {
    int64_t left = index[d];
    for (size_t i = dims_[d].size(); i-- > 0; left /= dims_[d][i].extent)
      offset += left % dims_[d][i].extent * dims_[d][i].stride;
  }
  return offset;
}

int64_t MemoryLayout::bit_offset(std::span<const int64_t> index) const {
  const int64_t bits = linear_offset(index) * element_bits_;
  return swizzle_.apply(bits / 8) * 8 + bits % 8;
}

MemoryLayout MemoryLayout::permuted(const std::vector<int>& order) const {
  std::vector<int64_t> shape;
  Dims dims;
  for (int d : order) shape.push_back(shape_[d]), dims.push_back(dims_[d]);
  return MemoryLayout(std::move(shape), std::move(dims), element_bits_, swizzle_);
}

size_t MemoryLayout::hash() const {
  size_t hash = 0xcbf29ce484222325;  // FNV-1a, a word at a time
  const auto mix = [&](int64_t value) { hash = (hash ^ static_cast<size_t>(value)) * 0x100000001b3; };
  for (int d = 0; d < rank(); ++d) {
    mix(shape_[d]);
    for (const Mode& m : dims_[d]) mix(m.extent), mix(m.stride);
  }
  mix(element_bits_), mix(swizzle_.bits), mix(swizzle_.base), mix(swizzle_.shift);
  return hash;
}

}  // namespace tilewright
