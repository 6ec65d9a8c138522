#include "analysis/im2col.h"

#include "ir/operators.h"
#include "ir/widen.h"

namespace tilewright::analysis {

using namespace ir;

std::vector<Expr> im2col_element(const Copy& copy, const std::vector<Expr>& image_shape,
                                 const std::vector<Expr>& point) {
  const Im2col& p = copy.im2col;
  const std::vector<Expr> shape = widened(image_shape);  // N, H, W, C
  const std::vector<Expr> tile = widened(copy.to.extent);
  const size_t rank = tile.size();
  const Expr rows = tile[rank - 2], columns = tile[rank - 1];
  auto out_extent = [&](const Expr& in) {
    const Expr free = add(in, wide(2 * p.pad - p.dilation * (p.kernel - 1) - 1));
    // An image that is smaller than a patch has one all the same, partly outside of it.
    return binary(BinaryOp::Max, add(binary(BinaryOp::FloorDiv, free, wide(p.stride)), wide(1)), wide(1));
  };
  auto split = [](const Expr& e, const Expr& by) {
    return std::pair(binary(BinaryOp::FloorDiv, e, by), binary(BinaryOp::FloorMod, e, by));
  };
  const Expr pixel = add(mul(widen(p.row_block), rows), widen(point[rank - 2])),
             column = add(mul(widen(p.column_block), columns), widen(point[rank - 1]));
  const auto [row, ow] = split(pixel, out_extent(shape[2]));
  const auto [n, oh] = split(row, out_extent(shape[1]));
  const auto [tap, c] = split(column, shape[3]);
  const auto [kh, kw] = split(tap, wide(p.kernel));
  // Columns outside of the matrix have no pixel. Where blocks of columns end with it, all of one are inside or none is.
  const auto channels = constant_int(shape[3]), block = constant_int(columns);
  const int64_t taps = p.kernel * p.kernel;
  const bool ends_with_it = channels && block && *channels * taps % *block == 0;
  const Expr place_of_column = ends_with_it ? widen(p.column_block) : column;
  const Expr end = ends_with_it ? wide(*channels * taps / *block) : mul(wide(taps), shape[3]);
  const Expr inside =
      logical_and(binary(BinaryOp::Le, wide(0), place_of_column), binary(BinaryOp::Lt, place_of_column, end));
  auto place = [&](const Expr& o, const Expr& k) {
    return add(add(mul(o, wide(p.stride)), mul(k, wide(p.dilation))), wide(-p.pad));
  };
  return {select(inside, n, wide(-1)), place(oh, kh), place(ow, kw), c};
}

std::optional<Region> im2col_box(const Copy& copy, const ProgramTables& program) {
  const Im2col& p = copy.im2col;
  const std::vector<Expr>& shape = program.buffer(copy.from.buffer).shape;  // N, H, W, C
  const size_t rank = copy.to.extent.size();
  const auto height = constant_int(shape[1]), width = constant_int(shape[2]), channels = constant_int(shape[3]),
             rows = constant_int(copy.to.extent[rank - 2]), columns = constant_int(copy.to.extent[rank - 1]);
  if (!height || !width || !channels || !rows || !columns || p.stride != 1 || *channels % *columns != 0) return {};
  const int64_t taken = 2 * p.pad - p.dilation * (p.kernel - 1), out_height = *height + taken,
                out_width = *width + taken;
  if (out_height <= 0 || out_width <= 0) return {};
  const bool is_lines = *rows % out_width == 0 && out_height % (*rows / out_width) == 0;
  if (!is_lines && out_width % *rows != 0) return {};
  Region box{copy.from.buffer, {}, {}};
  box.min = im2col_element(copy, shape, std::vector<Expr>(rank, wide(0)));
  box.extent = {wide(1), wide(is_lines ? *rows / out_width : 1), wide(is_lines ? out_width : *rows), wide(*columns)};
  return box;
}

}  // namespace tilewright::analysis
