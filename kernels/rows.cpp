// Functions of rows: softmax and its gradient, norms. A row is on chip whole, or is walked twice in tiles.
#include <functional>

#include "tilewright/kernels.h"
#include "tilewright/language.h"

namespace tilewright::kernels {
namespace {

constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;

bool is_norm(RowFunction f) { return f == RowFunction::RmsNorm || f == RowFunction::LayerNorm; }
bool is_exponential(RowFunction f) { return f == RowFunction::Softmax || f == RowFunction::LogSoftmax; }

// What a row, or a piece of one, has besides its elements, one number each.
struct RowSums {
  Buffer first, second;  // the largest, or the mean; the sum
  Buffer before, part;   // the largest before a tile, and the tile's sum
};

// The statements of a block, over tiles of `width` columns at `column`.
struct RowBlock {
  const RowOptions& o;
  const Tensor &X, &Z, &W, &B, &Y;
  const Value &N, &row, &epsilon;
  int64_t width, pieces;  // of a row: a warp's own
  Buffer x, other;        // rows, or pieces of one
  Buffer told;            // of a cluster: barriers

  int64_t count() const { return o.rows * pieces; }
  int64_t piece() const { return width / pieces; }

  void load(const Value& column) const {
    if (pieces == 1) {
      copy(X(row, column), x);
    } else {
      for (auto [i, j] : Parallel(pieces, piece())) x(i, j) = cast(X(row, column + i * piece() + j), f32);
    }
    if (o.function == RowFunction::SoftmaxBackward) copy(Z(row, column), other);
  }

  // Adds a tile to what is known of the rows. Beyond a row there are zeros, or -inf where the largest is asked for.
  void gather(const RowSums& s) const {
    const int64_t R = o.rows;
    if (is_exponential(o.function) && o.columns > 0) {
      raise(s);
    } else if (is_exponential(o.function)) {
      copy(s.first, s.before);
      reduce_max(x, s.first, {.dim = 1, .clear = false});
      // What was -inf so far adds nothing; a row of nothing else ends as 0 / 0.
      for (auto [i, j] : Parallel(R, width))
        other(i, j) = if_then_else(s.first(i) == -infinity(f32), 0.0F, exp2((x(i, j) - s.first(i)) * kLog2E));
      reduce_sum(other, s.part, {.dim = 1});
      for (auto i : Parallel(R)) {
        Value kept = if_then_else(s.before(i) == -infinity(f32), 0.0F, exp2((s.before(i) - s.first(i)) * kLog2E));
        s.second(i) = s.second(i) * kept + s.part(i);
      }
    } else if (o.function == RowFunction::SoftmaxBackward) {
      for (auto [i, j] : Parallel(R, width)) x(i, j) = x(i, j) * other(i, j);
      reduce_sum(x, s.second, {.dim = 1, .clear = false});
    } else if (o.function == RowFunction::LayerNorm) {
      reduce_sum(x, s.first, {.dim = 1, .clear = false});
    } else {
      for (auto [i, j] : Parallel(R, width)) other(i, j) = x(i, j) * x(i, j);
      reduce_sum(other, s.second, {.dim = 1, .clear = false});
    }
  }

  // A row that is on chip whole: softmax has the powers in its place. A part of it may be nothing but -inf, and adds
  // nothing then; a whole row of it becomes NaN. Of narrow floats a power is one multiplication and addition: what that
  // rounds of the exponent, 2^-24 of the largest, is less than they have.
  void raise(const RowSums& s) const {
    const Buffer& powers = o.function == RowFunction::Softmax ? x : other;
    reduce_max(x, s.first, {.dim = 1});
    if (o.x.bits <= 16 && is_in_parts())
      for (auto i : Parallel(count()))
        s.part(i) = if_then_else(s.first(i) == -infinity(f32), 0.0F, s.first(i)) * kLog2E;
    for (auto [i, j] : Parallel(count(), piece())) {
      if (!is_in_parts())
        powers(i, j) = exp2((x(i, j) - s.first(i)) * kLog2E);
      else if (o.x.bits <= 16)
        powers(i, j) = exp2(x(i, j) * kLog2E - s.part(i));
      else
        powers(i, j) = if_then_else(s.first(i) == -infinity(f32), 0.0F, exp2((x(i, j) - s.first(i)) * kLog2E));
    }
    reduce_sum(powers, s.second, {.dim = 1});
  }
  bool is_in_parts() const { return o.parts > 1 || pieces > 1; }

  // The variance is of differences from the mean: the sum of squares would cancel.
  void spread(const RowSums& s, const Value& column) const {
    for (auto [i, j] : Parallel(o.rows, width)) {
      Value d = if_then_else(column + j < N, x(i, j) - s.first(i), 0.0F);
      other(i, j) = d * d;
    }
    reduce_sum(other, s.second, {.dim = 1, .clear = false});
  }

  // What the blocks of a cluster have of their parts of the rows, in each of them: numbers of each row. The first time
  // waits for the blocks to have begun; a block's own barrier, of each turn one, tells that what the others send is
  // there. (Of one for both turns a block that waits for its third would get the arrivals of the next turn.)
  Buffer of_all(std::initializer_list<Buffer> own, const Value& rank, int64_t turn, int64_t rows) const {
    const auto numbers = static_cast<int64_t>(own.size());
    auto all = alloc_shared({o.parts, numbers, rows}, f32);
    int64_t at = 0;
    if (o.parts == 1) {
      for (const Buffer& b : own) copy(b, all(0, at++, 0));
      return all;
    }
    auto sent = alloc_shared({numbers, rows}, f32);
    for (const Buffer& b : own) copy(b, sent(at++, 0));
    if (turn == 0) cluster_wait();
    for (int64_t block = 0; block < o.parts; ++block) copy_cluster(sent, all(rank, 0, 0), block, told(turn));
    barrier_wait(told(turn), 0);
    return all;
  }
  void add(const Buffer& sum, const Value& rank, int64_t turn) const {
    const Buffer all = of_all({sum}, rank, turn, o.rows);
    for (auto i : Parallel(o.rows)) {
      Value whole = all(0, 0, i);
      for (int64_t block = 1; block < o.parts; ++block) whole = whole + all(block, 0, i);
      sum(i) = whole;
    }
  }
  // The largest number and the sum of powers of what has n of them: `at` gives of each of these the largest (0) and the
  // sum (1), for row i.
  void join(int64_t n, const std::function<Value(int64_t, int64_t, const Value&)>& at, const Buffer& first,
            const Buffer& second, int64_t rows) const {
    for (auto i : Parallel(rows)) {
      Value most = at(0, 0, i);
      for (int64_t k = 1; k < n; ++k) most = max(most, at(k, 0, i));
      first(i) = most;
    }
    for (auto i : Parallel(rows)) {
      Value whole = 0.0F;
      for (int64_t k = 0; k < n; ++k)
        whole = whole + if_then_else(at(k, 0, i) == -infinity(f32), 0.0F,
                                     at(k, 1, i) * exp2((at(k, 0, i) - first(i)) * kLog2E));
      second(i) = whole;
    }
  }
  // Of parts and pieces; where these are many, the block's pieces are joined first, since each thread takes a power of
  // each.
  void add_powers(const RowSums& s, const Value& rank) const {
    copy(s.first, s.before);
    if (o.parts > 1 && o.parts * pieces > 16 && pieces > 1) {
      auto here = alloc_shared({2, pieces}, f32);
      auto first = alloc_fragment({1}, f32), second = alloc_fragment({1}, f32);
      copy(s.first, here(0, 0)), copy(s.second, here(1, 0));
      join(
          pieces, [&](int64_t n, int64_t kind, const Value&) -> Value { return here(kind, n); }, first, second, 1);
      const Buffer all = of_all({first, second}, rank, 0, 1);
      join(
          o.parts, [&](int64_t n, int64_t kind, const Value&) -> Value { return all(n, kind, 0); }, s.first, s.second,
          count());
    } else {
      const Buffer all = of_all({s.first, s.second}, rank, 0, count());
      const auto at = [&](int64_t n, int64_t kind, const Value& i) -> Value {
        return pieces == 1 ? Value(all(n, kind, i)) : Value(all(n / pieces, kind, n % pieces));
      };
      join(o.parts * pieces, at, s.first, s.second, count());
    }
    // The powers that are there are of the piece's own largest.
    if (o.function == RowFunction::Softmax)
      for (auto i : Parallel(count()))
        s.part(i) = if_then_else(s.before(i) == -infinity(f32), 0.0F, exp2((s.before(i) - s.first(i)) * kLog2E));
  }

  // What each element of a row is combined with, once a row.
  void sum_up(const RowSums& s) const {
    for (auto i : Parallel(count())) {
      if (o.function == RowFunction::Softmax)
        s.second(i) = (is_in_parts() ? Value(s.part(i)) : Value(1.0F)) / s.second(i);
      if (o.function == RowFunction::LogSoftmax) s.second(i) = log2(s.second(i)) * kLn2;
      if (is_norm(o.function)) s.second(i) = rsqrt(s.second(i) / cast(N, f32) + epsilon);
    }
  }

  void finish(const RowSums& s, const Value& column) const {
    for (auto [i, j] : Parallel(count(), piece())) {
      Value v = x(i, j);
      if (o.function == RowFunction::Softmax)  // of a row that is on chip whole the powers are there
        v = (o.columns > 0 ? v : exp2((v - s.first(i)) * kLog2E)) * s.second(i);
      // Not of the sum of both: beside a large one the logarithm would be rounded away.
      if (o.function == RowFunction::LogSoftmax) v = v - s.first(i) - s.second(i);
      if (o.function == RowFunction::SoftmaxBackward) v = other(i, j) * (v - s.second(i));
      if (o.function == RowFunction::LayerNorm) v = v - s.first(i);
      if (is_norm(o.function)) v = v * s.second(i);
      if (o.weight) v = v * cast(W(column + j), f32);
      if (o.bias) v = v + cast(B(column + j), f32);
      if (pieces == 1)
        x(i, j) = v;
      else
        Y(row, column + i * piece() + j) = v;
    }
    if (pieces == 1) copy(x, Y(row, column));
  }
};

}  // namespace

Program rows(const RowOptions& o) {
  const bool whole = o.columns > 0, backward = o.function == RowFunction::SoftmaxBackward;
  const Value M = dynamic("M"), N = whole ? Value(o.columns) : dynamic("N"), epsilon = Scalar("epsilon", f32);
  const Tensor X("X", {M, N}, o.x), Z("Z", {M, N}, o.x), W("W", {N}, o.x), B("B", {N}, o.x), Y("Y", {M, N}, o.result);
  // Where a block has one row, each of its warps has a piece: powers of the piece's own largest number wait for no
  // other warp. A part of a row is whole pieces, of eights of elements.
  const int64_t warps = o.threads / 32;
  const bool has_pieces = whole && is_exponential(o.function) && o.rows == 1 && warps > 1 && warps <= 16 &&
                          (o.parts > 1 || o.columns % (8 * warps) == 0);
  const int64_t pieces = has_pieces ? warps : 1;
  const int64_t width = !whole         ? o.tile
                        : o.parts == 1 ? o.columns
                                       : ceildiv(ceildiv(o.columns, o.parts), 8 * pieces) * 8 * pieces;

  const auto body = [&] {
    KernelOptions options{.threads = o.threads};
    if (o.parts > 1) options.cluster_dims = {o.parts, 1, 1};
    for (auto bx : Kernel(ceildiv(M, o.rows) * o.parts, options)) {
      const Value row = floordiv(bx, o.parts) * o.rows, rank = bx % o.parts, begin = rank * width;
      // clang-format off
      const RowBlock block{o, X, Z, W, B, Y, N, row, epsilon, width, pieces,
                           alloc_fragment({o.rows * pieces, width / pieces}, f32, "x"),
                           alloc_fragment({o.rows * pieces, width / pieces}, f32, "other"),
                           o.parts > 1 ? alloc_barrier({o.parts, o.parts}) : Buffer()};
      // clang-format on
      const auto of_rows = [&](const char* name) { return alloc_fragment({o.rows * pieces}, f32, name); };
      const RowSums s{of_rows("first"), of_rows("second"), of_rows("before"), of_rows("part")};
      // Beyond a row. Of rows that are there whole nothing is, and they may come ahead.
      if (is_exponential(o.function) && !(whole && o.parts == 1)) annotate_safe_value(X, -infinity(o.x));
      is_exponential(o.function) ? fill(s.first, -infinity(f32)) : clear(s.first);
      clear(s.second);
      const auto each_tile = [&](const std::function<void(const Value&)>& run) {
        if (whole) return run(begin);
        for (auto k : Pipelined(ceildiv(N, width), {.num_stages = 2})) {
          const Value column = k * width;
          block.load(column);
          run(column);
        }
      };
      if (o.parts > 1) cluster_arrive();  // there is memory for the others to write to
      if (whole) block.load(begin);
      each_tile([&](const Value&) { block.gather(s); });
      if (is_exponential(o.function) && block.is_in_parts())
        block.add_powers(s, rank);
      else if (o.parts > 1)
        block.add(backward || o.function == RowFunction::RmsNorm ? s.second : s.first, rank, 0);
      if (o.function == RowFunction::LayerNorm) {
        for (auto i : Parallel(o.rows)) s.first(i) = s.first(i) / cast(N, f32);
        each_tile([&](const Value& column) { block.spread(s, column); });
        if (o.parts > 1) block.add(s.second, rank, 1);
      }
      if (!backward) block.sum_up(s);
      if (backward && whole) block.load(begin);  // their product stands in the place of x
      each_tile([&](const Value& column) { block.finish(s, column); });
    }
  };
  const char* const name = "rows";
  if (backward) return prim_func(name, {X, Z, Y}, body);
  if (!is_norm(o.function)) return prim_func(name, {X, Y}, body);
  if (o.weight && o.bias) return prim_func(name, {X, W, B, Y, epsilon}, body);
  if (o.weight) return prim_func(name, {X, W, Y, epsilon}, body);
  return prim_func(name, {X, Y, epsilon}, body);
}

}  // namespace tilewright::kernels
