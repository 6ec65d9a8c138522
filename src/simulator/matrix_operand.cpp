#include "simulator/matrix_operand.h"

namespace tilewright::simulator {

namespace {
constexpr int64_t kGroup = 8;  // rows of a panel that the swizzle knows apart
}

int64_t MatrixOperand::offset(int64_t row, int64_t column) const {
  std::vector<int64_t> index = min;
  const size_t rank = index.size();
  index[rank - 2] += transposed ? column : row, index[rank - 1] += transposed ? row : column;
  return buffer->memory()->linear_offset(index) * type.storage_bits() / 8;
}

// A panel is rows of `width_` bytes, one behind the other; panels and groups of eight rows have strides of their own.
int64_t MatrixOperand::walk(int64_t contiguous_bytes, int64_t other) const {
  return contiguous_bytes % width_ + contiguous_bytes / width_ * panel_bytes_ + other % kGroup * width_ +
         other / kGroup * group_bytes_;
}

std::string MatrixOperand::fault() {
  const MemoryLayout* layout = buffer->memory();
  const bool same = buffer->type == type || (type == tf32 && buffer->type == f32);
  if (!same) return fmt::format("it holds {}, not {}", buffer->type.name(), type.name());
  if (!layout || min.size() < 2) return "it does not lie in panels";
  if (!layout->swizzle().is_hardware()) return "wgmma does not know its swizzle";
  for (size_t d = 0; d + 2 < extent.size(); ++d)
    if (extent[d] != 1) return "the tile has more than two dimensions";
  const int64_t last = extent.back(), before = extent[extent.size() - 2];
  if ((transposed ? last : before) != rows || (transposed ? before : last) != k)
    return fmt::format("the tile is {} x {}, not {} x {}", before, last, transposed ? k : rows, transposed ? rows : k);
  width_ = layout->swizzle().bits > 0 ? layout->swizzle().span() : 16;
  const int64_t bytes = type.storage_bits() / 8, across = width_ / bytes;
  start_ = base + offset(0, 0);
  const int64_t contiguous = transposed ? rows : k, other = transposed ? k : rows;
  const auto at = [&](int64_t c, int64_t o) { return base + (transposed ? offset(c, o) : offset(o, c)) - start_; };
  group_bytes_ = other > kGroup ? at(0, kGroup) : 0;
  // Within a panel a tile may begin at any 16 bytes along k; then it must end there too.
  panel_bytes_ = contiguous > across ? at(across, 0) : 0;
  for (int64_t c = 0; c < contiguous; ++c)
    if (at(c, 0) != walk(c * bytes, 0)) return "its rows are not rows of one panel after the other";
  for (int64_t o = 0; o < other; ++o)
    if (at(0, o) != walk(0, o)) return "its rows do not follow each other in groups of eight";
  if (start_ % 16 != 0) return fmt::format("it begins at byte {}, no multiple of 16", start_);
  if (width_ > 16 && start_ / width_ % kGroup != 0)
    return fmt::format("it begins at byte {} of shared memory, not at the first of eight rows of {} bytes", start_,
                       width_);
  return "";
}

uint64_t MatrixOperand::place(int64_t row, int64_t column) const {
  const int64_t bytes = type.storage_bits() / 8;
  const auto a = static_cast<uint64_t>(start_ + (transposed ? walk(row * bytes, column) : walk(column * bytes, row)));
  const auto bits = static_cast<uint64_t>(buffer->memory()->swizzle().bits);
  return a ^ ((a >> 7 & ((uint64_t{1} << bits) - 1)) << 4);
}

}  // namespace tilewright::simulator
