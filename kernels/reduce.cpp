// Sums, means, maxima and minima along one dimension, in parts where there are few results.
#include "tilewright/kernels.h"
#include "tilewright/language.h"

namespace tilewright::kernels {

Program reduce(const ReduceOptions& o) {
  const DType sum = o.x.is_int() ? i32 : f32;
  const bool adds = o.reduction == Reduction::Sum || o.reduction == Reduction::Mean;
  const bool largest = o.reduction == Reduction::Max;
  const Value M = dynamic("M"), R = dynamic("R"), N = dynamic("N"), P = dynamic("P");
  const Value count = Scalar("count", f32);
  const Tensor X = o.last ? Tensor("X", {M, R}, o.x) : Tensor("X", {M, R, N}, o.x);
  const Tensor Y = o.last    ? o.split ? Tensor("Y", {P, M}, o.result) : Tensor("Y", {M}, o.result)
                      : o.split ? Tensor("Y", {P, M, N}, o.result)
                             : Tensor("Y", {M, N}, o.result);
  // What adds nothing, of a type.
  const auto nothing = [&](DType type) -> Value {
    if (adds) return cast(0, type);
    if (type.is_int()) return largest ? Value(min_value(type)) : Value(max_value(type));
    return largest ? Value(-infinity(type)) : Value(infinity(type));
  };
  const auto reduce_all = [&](const Buffer& from, const Buffer& to, int64_t dim) {
    const tilewright::ReduceOptions options{.dim = dim, .nan_propagate = true};
    if (adds) return reduce_sum(from, to, {.dim = dim});
    largest ? reduce_max(from, to, options) : reduce_min(from, to, options);
  };
  const auto combined = [&](const Value& a, const Value& b) -> Value {
    if (adds) return a + b;
    if (o.x.is_int()) return largest ? Value(max(a, b)) : Value(min(a, b));
    return scalar_function(largest ? "max_nan" : "min_nan", {a, b});
  };

  const auto body = [&] {
    const int64_t results = o.last ? o.rows : o.columns;  // of a block
    const Value across = o.last ? Value(ceildiv(M, o.rows)) : Value(ceildiv(N, o.columns));
    for (auto [bx, by, bz] : Kernel({across, o.last ? Value(1) : M, o.split ? P : Value(1)}, {.threads = o.threads})) {
      auto x = o.last ? alloc_fragment({o.rows, o.tile}, sum, "x") : alloc_fragment({o.tile, o.columns}, sum, "x");
      auto sums =
          o.last ? alloc_fragment({o.rows, o.tile}, sum, "sums") : alloc_fragment({o.tile, o.columns}, sum, "sums");
      auto y = alloc_fragment({results}, sum);
      if (!adds) annotate_safe_value(X, nothing(o.x));
      fill(sums, nothing(sum));
      // The part of a block, in whole tiles.
      const Value tiles = ceildiv(R, o.tile), share = ceildiv(tiles, o.split ? P : Value(1));
      const Value first = min(bz * share, tiles), last = min(first + share, tiles);
      for (auto t : Pipelined(first, last, {.num_stages = 2})) {
        o.last ? copy(X(bx * o.rows, t * o.tile), x) : copy(X(by, t * o.tile, bx * o.columns), x);
        // Element by element: what is left at the end is combined across threads once.
        for (auto [i, j] : Parallel(o.last ? o.rows : o.tile, o.last ? o.tile : o.columns))
          sums(i, j) = combined(sums(i, j), x(i, j));
      }
      reduce_all(sums, y, o.last ? 1 : 0);
      if (o.reduction == Reduction::Mean)
        for (auto i : Parallel(results)) y(i) = y(i) / count;
      if (o.last) {
        o.split ? copy(y, Y(bz, bx * o.rows)) : copy(y, Y(bx * o.rows));
      } else {
        o.split ? copy(y, Y(bz, by, bx * o.columns)) : copy(y, Y(by, bx * o.columns));
      }
    }
  };
  if (o.reduction == Reduction::Mean) return prim_func("reduce", {X, Y, count}, body);
  return prim_func("reduce", {X, Y}, body);
}

}  // namespace tilewright::kernels
