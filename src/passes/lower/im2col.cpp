#include "passes/lower/im2col.h"

#include "ir/operators.h"
#include "passes/lower/lowering.h"

namespace tilewright::passes {

using namespace ir;

std::vector<Expr> im2col_element(const Im2col& p, const std::vector<Expr>& image_shape, const Expr& rows,
                                 const Expr& columns, const Expr& i, const Expr& j) {
  const std::vector<Expr> shape = widened(image_shape);  // N, H, W, C
  auto out_extent = [&](const Expr& in) {
    const Expr free = add(in, wide(2 * p.pad - p.dilation * (p.kernel - 1) - 1));
    return add(binary(BinaryOp::FloorDiv, free, wide(p.stride)), wide(1));
  };
  auto split = [](const Expr& e, const Expr& by) {
    return std::pair(binary(BinaryOp::FloorDiv, e, by), binary(BinaryOp::FloorMod, e, by));
  };
  const Expr pixel = add(mul(widen(p.row_block), rows), i), column = add(mul(widen(p.column_block), columns), j);
  const auto [row, ow] = split(pixel, out_extent(shape[2]));
  const auto [n, oh] = split(row, out_extent(shape[1]));
  const auto [tap, c] = split(column, shape[3]);
  const auto [kh, kw] = split(tap, wide(p.kernel));
  auto place = [&](const Expr& o, const Expr& k) {
    return add(add(mul(o, wide(p.stride)), mul(k, wide(p.dilation))), wide(-p.pad));
  };
  return {n, place(oh, kh), place(ow, kw), c};
}

}  // namespace tilewright::passes
