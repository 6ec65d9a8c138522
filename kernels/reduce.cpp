// Reductions along one dimension, in parts where there are few results.
#include "tilewright/kernels.h"
#include "tilewright/language.h"

namespace tilewright::kernels {
namespace {

enum class Joins : uint8_t { Sum, Largest, Least, Product };

Joins joins_of(Reduction r) {
  switch (r) {
    case Reduction::Max:
    case Reduction::InfNorm:
    case Reduction::Any: return Joins::Largest;
    case Reduction::Min:
    case Reduction::All: return Joins::Least;
    case Reduction::Prod: return Joins::Product;
    default: return Joins::Sum;
  }
}

bool asks(Reduction r) { return r == Reduction::Any || r == Reduction::All || r == Reduction::CountNonzero; }
bool is_centred(Reduction r) {
  return r == Reduction::Variance || r == Reduction::Deviation || r == Reduction::LogSumExp;
}

// What is reduced, and with what, of one call.
struct Reducing {
  const ReduceOptions& o;
  Joins joins = joins_of(o.reduction);
  DType sum = asks(o.reduction) || o.x.is_int() ? i32 : f32;                    // the type of sums
  bool is_plain = o.mapped || !(asks(o.reduction) || is_centred(o.reduction));  // zeros outside are as good as any

  // What changes no result.
  Value nothing(DType type) const {
    if (joins == Joins::Sum || o.reduction == Reduction::InfNorm) return cast(0, type);
    if (joins == Joins::Product) return cast(1, type);
    const bool low = joins == Joins::Largest;
    if (type.is_int()) return low ? Value(min_value(type)) : Value(max_value(type));
    return low ? Value(-infinity(type)) : Value(infinity(type));
  }
  // What an element is to a sum.
  Value mapped(const Value& x, const Value& centre) const {
    if (o.mapped) return x;
    if (asks(o.reduction)) return cast(x.dtype().is_bool() ? x : Value(x != cast(0, x.dtype())), i32);
    const Value d = is_centred(o.reduction) ? Value(x - centre) : x;
    switch (o.reduction) {
      case Reduction::L1Norm:
      case Reduction::InfNorm: return abs(x);
      case Reduction::L2Norm: return x * x;
      case Reduction::Variance:
      case Reduction::Deviation: return d * d;
      // Of a largest that is infinite, what is as large counts, and no other.
      case Reduction::LogSumExp: return if_then_else(x == centre, 1.0F, exp(d));
      default: return x;
    }
  }
  Value combined(const Value& a, const Value& b) const {
    if (joins == Joins::Sum) return a + b;
    if (joins == Joins::Product) return a * b;
    const bool largest = joins == Joins::Largest;
    if (sum.is_int()) return largest ? Value(max(a, b)) : Value(min(a, b));
    return scalar_function(largest ? "max_nan" : "min_nan", {a, b});
  }
  Value finished(const Value& y, const Value& count, const Value& centre) const {
    switch (o.reduction) {
      case Reduction::Mean:
      case Reduction::Variance: return y / count;
      case Reduction::Deviation: return sqrt(y / count);
      case Reduction::L2Norm: return sqrt(y);
      case Reduction::LogSumExp: return log(y) + centre;
      case Reduction::Any:
      case Reduction::All: return cast(y > 0, boolean);
      default: return y;
    }
  }
  // Along a dimension of a tile of `rows` x `columns`, into `to`.
  void join(const Buffer& from, const Buffer& to, int64_t rows, int64_t columns, int64_t dim) const {
    const tilewright::ReduceOptions options{.dim = dim, .nan_propagate = true};
    if (joins == Joins::Sum) return reduce_sum(from, to, {.dim = dim});
    if (joins == Joins::Largest) return reduce_max(from, to, options);
    if (joins == Joins::Least) return reduce_min(from, to, options);
    // By halves, in shared memory.
    auto lying = alloc_shared({rows, columns}, sum, "lying");
    copy(from, lying);
    for (int64_t half = (dim ? columns : rows) / 2; half > 0; half /= 2)
      for (auto [i, j] : Parallel(dim ? rows : half, dim ? half : columns))
        lying(i, j) = lying(i, j) * (dim ? lying(i, j + half) : lying(i + half, j));
    for (auto i : Parallel(dim ? rows : columns)) to(i) = dim ? lying(i, 0) : lying(0, i);
  }
};

}  // namespace

Program reduce(const ReduceOptions& o) {
  const Reducing r{o};
  const bool centred = is_centred(o.reduction) && (!o.mapped || o.reduction == Reduction::LogSumExp);
  const bool counts = !o.split && (o.reduction == Reduction::Mean || o.reduction == Reduction::Variance ||
                                   o.reduction == Reduction::Deviation);
  const Value M = dynamic("M"), R = dynamic("R"), N = dynamic("N"), P = dynamic("P");
  const Value count = Scalar("count", f32);
  const Tensor X = o.last ? Tensor("X", {M, R}, o.x) : Tensor("X", {M, R, N}, o.x);
  const Tensor C = o.last ? Tensor("C", {M}, f32) : Tensor("C", {M, N}, f32);
  const Tensor Y = o.last    ? o.split ? Tensor("Y", {P, M}, o.result) : Tensor("Y", {M}, o.result)
                      : o.split ? Tensor("Y", {P, M, N}, o.result)
                             : Tensor("Y", {M, N}, o.result);
  const auto body = [&] {
    const int64_t results = o.last ? o.rows : o.columns;  // of a block
    const int64_t down = o.last ? o.rows : o.tile, across = o.last ? o.tile : o.columns;
    const Value blocks = o.last ? Value(ceildiv(M, o.rows)) : Value(ceildiv(N, o.columns));
    for (auto [bx, by, bz] : Kernel({blocks, o.last ? Value(1) : M, o.split ? P : Value(1)}, {.threads = o.threads})) {
      auto x = alloc_fragment({down, across}, asks(o.reduction) && !o.mapped ? o.x : r.sum, "x");
      auto sums = alloc_fragment({down, across}, r.sum, "sums");
      auto y = alloc_fragment({results}, r.sum), centre = alloc_fragment({results}, f32);
      const bool fills = r.joins != Joins::Sum && r.is_plain;
      if (fills) annotate_safe_value(X, r.nothing(o.x));
      fill(sums, r.nothing(r.sum));
      if (centred) o.last ? copy(C(bx * o.rows), centre) : copy(C(by, bx * o.columns), centre);
      // The part of a block, in whole tiles.
      const Value tiles = ceildiv(R, o.tile), share = ceildiv(tiles, o.split ? P : Value(1));
      const Value first = min(bz * share, tiles), last = min(first + share, tiles);
      for (auto t : Pipelined(first, last, {.num_stages = 2})) {
        o.last ? copy(X(bx * o.rows, t * o.tile), x) : copy(X(by, t * o.tile, bx * o.columns), x);
        // Element by element: what is left at the end is combined across threads once.
        for (auto [i, j] : Parallel(down, across)) {
          const Value c = centred && !o.mapped ? Value(centre(o.last ? i : j)) : Value(0.0F);
          Value v = r.mapped(x(i, j), c);
          if (!r.is_plain) v = if_then_else(t * o.tile + (o.last ? j : i) < R, v, r.nothing(r.sum));
          sums(i, j) = r.combined(sums(i, j), v);
        }
      }
      r.join(sums, y, down, across, o.last ? 1 : 0);
      auto made = alloc_fragment({results}, o.result);
      for (auto i : Parallel(results)) {
        const Value whole = y(i);
        const Value v = o.split ? whole : r.finished(whole, count, centred ? Value(centre(i)) : Value(0.0F));
        made(i) = v.dtype() == o.result ? v : Value(cast(v, o.result));
      }
      if (o.last) {
        o.split ? copy(made, Y(bz, bx * o.rows)) : copy(made, Y(bx * o.rows));
      } else {
        o.split ? copy(made, Y(bz, by, bx * o.columns)) : copy(made, Y(by, bx * o.columns));
      }
    }
  };
  const char* const name = "reduce";
  if (centred && counts) return prim_func(name, {X, C, Y, count}, body);
  if (centred) return prim_func(name, {X, C, Y}, body);
  if (counts) return prim_func(name, {X, Y, count}, body);
  return prim_func(name, {X, Y}, body);
}

}  // namespace tilewright::kernels
