// Layouts of gemm operands: sizes, offsets, and which of them the kernel likes.
#include <fmt/format.h>

#include "codegen/cpu/gemm_kernel.h"
#include "codegen/cpu/gemm_text.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// Row-major with rows that start on a cache line. One more line keeps rows a power of two bytes apart out of the same
// sets of the first-level cache.
OperandLayout padded_rows(DType stored, int64_t columns) {
  const int64_t line = 64 * 8 / stored.storage_bits();
  return OperandLayout::strided(stored, round_up(columns, line) + line);
}

}  // namespace

OperandLayout OperandLayout::strided(DType stored, int64_t row_stride, int64_t column_stride) {
  OperandLayout layout;
  layout.stored = stored;
  layout.row_stride = row_stride;
  layout.column_stride = column_stride;
  return layout;
}

OperandLayout OperandLayout::panels(DType stored, int axis, int64_t width, int64_t interleave) {
  OperandLayout layout;
  layout.form = Form::Panels;
  layout.stored = stored;
  layout.axis = axis;
  layout.width = width;
  layout.interleave = interleave;
  return layout;
}

int64_t layout_elements(const OperandLayout& layout, int64_t rows, int64_t columns) {
  if (layout.form == OperandLayout::Form::Panels) {
    const int64_t along = layout.axis == 0 ? rows : columns, other = layout.axis == 0 ? columns : rows;
    return round_up(along, layout.width) * round_up(other, layout.interleave);
  }
  check_internal(layout.row_stride > 0, "the size of a buffer with a run-time row stride was asked for");
  return (rows - 1) * layout.row_stride + (columns - 1) * layout.column_stride + 1;
}

int64_t layout_offset(const OperandLayout& layout, int64_t rows, int64_t columns, int64_t row, int64_t column) {
  if (layout.form == OperandLayout::Form::Strided) return row * layout.row_stride + column * layout.column_stride;
  const int64_t p = layout.axis == 0 ? row : column, q = layout.axis == 0 ? column : row;
  const int64_t groups = ceil_div(layout.axis == 0 ? columns : rows, layout.interleave);
  const int64_t width = layout.width, interleave = layout.interleave;
  return (p / width * groups + q / interleave) * width * interleave + p % width * interleave + q % interleave;
}

std::string layout_offset_text(const OperandLayout& layout, int64_t rows, int64_t columns, std::string_view row,
                               std::string_view column, std::string_view leading) {
  if (layout.form == OperandLayout::Form::Strided) {
    const std::string stride = layout.row_stride > 0 ? std::to_string(layout.row_stride) : std::string(leading);
    if (layout.column_stride == 1) return fmt::format("({}) * {} + ({})", row, stride, column);
    return fmt::format("({}) * {} + ({}) * {}", row, stride, column, layout.column_stride);
  }
  const std::string_view p = layout.axis == 0 ? row : column, q = layout.axis == 0 ? column : row;
  const int64_t extent = layout.axis == 0 ? rows : columns;
  const int64_t groups = ceil_div(layout.axis == 0 ? columns : rows, layout.interleave);
  const int64_t width = layout.width, interleave = layout.interleave;
  const bool one_panel = width >= extent;
  std::string panel = one_panel ? "" : fmt::format("({}) / {} * {} + ", p, width, groups * width * interleave);
  std::string lane = one_panel ? fmt::format("({})", p) : fmt::format("({}) % {}", p, width);
  if (interleave == 1) return fmt::format("{}({}) * {} + {}", panel, q, width, lane);
  return fmt::format("{}({}) / {} * {} + {} * {} + ({}) % {}", panel, q, interleave, width * interleave, lane,
                     interleave, q, interleave);
}

PreferredLayouts preferred_layouts(const GemmSpec& spec, VectorAxis axis) {
  const bool swapped = axis == VectorAxis::M;
  const GemmKernel kernel = choose_kernel(spec, axis);
  const int64_t width = kernel.width();
  // Buffer dimension of the non-reduced index: A is m x k and B is k x n unless transposed.
  const int a_axis = spec.transpose_a ? 1 : 0, b_axis = spec.transpose_b ? 0 : 1;
  const int vector_axis = swapped ? a_axis : b_axis, broadcast_axis = swapped ? b_axis : a_axis;
  const OperandLayout vectors = OperandLayout::panels(kernel.element, vector_axis, width, kernel.interleave);
  const int64_t broadcast_extent = swapped ? spec.n : spec.m;
  // A pair along k is broadcast as one word. Rows along k have it already; otherwise rows are interleaved, in one
  // panel. Tiles want rows along k alone: what does not have them lies tile by tile.
  const bool along_k = broadcast_axis == 0;
  OperandLayout broadcast = padded_rows(kernel.element, along_k ? spec.k : broadcast_extent);
  if (!along_k && kernel.tiles())
    broadcast = OperandLayout::panels(kernel.element, broadcast_axis, kTileRows, kTileSteps * kernel.interleave);
  else if (!along_k && kernel.interleave > 1)
    broadcast = OperandLayout::panels(kernel.element, broadcast_axis, broadcast_extent, 2);
  const OperandLayout c = OperandLayout::panels(spec.c, swapped ? 0 : 1, width);
  return swapped ? PreferredLayouts{vectors, broadcast, c} : PreferredLayouts{broadcast, vectors, c};
}

}  // namespace tilewright
