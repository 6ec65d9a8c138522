// Reduce, Scan and FinalizeReducer. Elements are taken in ascending order along the dimension.
#include <limits>

#include "interpreter/strand.h"
#include "scalar/text.h"

namespace tilewright::interpreter {

using ir::ReduceOp;

namespace {

// A box as [outer][along][inner].
struct Split {
  int64_t outer = 1, along = 1, inner = 1;
};

Split split_at(const Box& box, int64_t dim) {
  Split s;
  auto at = static_cast<size_t>(dim < 0 ? dim + static_cast<int64_t>(box.extent.size()) : dim);
  for (size_t d = 0; d < box.extent.size(); ++d) (d < at ? s.outer : d == at ? s.along : s.inner) *= box.extent[d];
  return s;
}

// Integers are added as int64 and wrapped at the end; the order of uint64 is its own.
template <class T>
struct Combiner {
  ReduceOp op;
  DType type;
  bool nan_propagate;

  T identity() const {
    constexpr bool floats = std::is_floating_point_v<T>;
    switch (op) {
      case ReduceOp::Max:
        if constexpr (floats) return -std::numeric_limits<T>::infinity();
        return type.is_signed() ? wrap(type, static_cast<int64_t>(uint64_t{1} << (type.bits - 1))) : 0;
      case ReduceOp::Min:
        if constexpr (floats) return std::numeric_limits<T>::infinity();
        return type.is_signed() ? wrap(type, static_cast<int64_t>((uint64_t{1} << (type.bits - 1)) - 1))
                                : wrap(type, -1);
      case ReduceOp::BitAnd: return static_cast<T>(std::is_floating_point_v<T> ? 0 : wrap(type, -1));
      default: return T{0};
    }
  }

  static T largest(T a, T b, bool nan) {
    if constexpr (std::is_same_v<T, float>) return nan ? scalar::max_nan_f32(a, b) : scalar::max_f32(a, b);
    if constexpr (std::is_same_v<T, double>) return nan ? scalar::max_nan_f64(a, b) : scalar::max_f64(a, b);
    return std::max(a, b);
  }
  static T smallest(T a, T b, bool nan) {
    if constexpr (std::is_same_v<T, float>) return nan ? scalar::min_nan_f32(a, b) : scalar::min_f32(a, b);
    if constexpr (std::is_same_v<T, double>) return nan ? scalar::min_nan_f64(a, b) : scalar::min_f64(a, b);
    return std::min(a, b);
  }
  static T add(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a + b;
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  T magnitude(T a) const {
    if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
    return type.is_signed() && a < 0 ? static_cast<T>(wrap(type, static_cast<int64_t>(0 - static_cast<uint64_t>(a))))
                                     : a;
  }

  // into[i] = into[i] op from[i]
  void rows(T* into, const T* from, int64_t n) const {
    auto loop = [&](auto f) {
      for (int64_t i = 0; i < n; ++i) into[i] = f(into[i], from[i]);
    };
    bool nan = nan_propagate, is_u64 = type == u64;
    auto as_unsigned = [](T x) { return static_cast<uint64_t>(x); };
    switch (op) {
      case ReduceOp::Sum: return loop([](T a, T b) { return add(a, b); });
      case ReduceOp::AbsSum: return loop([&](T a, T b) { return add(a, magnitude(b)); });
      case ReduceOp::AbsMax:
        if (!is_u64) return loop([&](T a, T b) { return largest(a, magnitude(b), nan); });
        [[fallthrough]];  // no signs
      case ReduceOp::Max:
        if (is_u64) return loop([&](T a, T b) { return as_unsigned(a) < as_unsigned(b) ? b : a; });
        return loop([&](T a, T b) { return largest(a, b, nan); });
      case ReduceOp::Min:
        if (is_u64) return loop([&](T a, T b) { return as_unsigned(b) < as_unsigned(a) ? b : a; });
        return loop([&](T a, T b) { return smallest(a, b, nan); });
      default: break;
    }
    if constexpr (std::is_integral_v<T>) {
      if (op == ReduceOp::BitAnd) return loop([](T a, T b) { return a & b; });
      if (op == ReduceOp::BitOr) return loop([](T a, T b) { return a | b; });
      return loop([](T a, T b) { return a ^ b; });
    }
    fail_internal("a reduction of bits over floats", __FILE__, __LINE__);
  }
};

// What joins results: magnitudes that were taken are not taken again of a sum that has wrapped around.
ReduceOp joining(ReduceOp op) {
  return op == ReduceOp::AbsSum ? ReduceOp::Sum : op == ReduceOp::AbsMax ? ReduceOp::Max : op;
}

// Calls f with a value of what the type is accumulated in.
template <class F>
void with_accumulator(DType type, F f) {
  LaneKind kind = lane_kind(type);
  if (kind == LaneKind::Float32) return f(float{});
  if (kind == LaneKind::Float64) return f(double{});
  f(int64_t{});
}

// The type that holds what is accumulated before it is rounded or wrapped to the result's. What max and min choose of
// floats is of the result's already, an infinity too.
DType wide(DType type, ReduceOp op) {
  LaneKind kind = lane_kind(type);
  if (type.is_float() && (op == ReduceOp::Max || op == ReduceOp::Min || op == ReduceOp::AbsMax)) return type;
  return kind == LaneKind::Float32 ? f32 : kind == LaneKind::Float64 ? f64 : i64;
}

}  // namespace

template <>
void Strand::execute(const ir::Reduce& op, const Step& s, Mask mask) {
  collective(s, mask, [&](int64_t lane) {
    ArenaScope scope(arena_);
    Box from = box(s.regions[0], mask, lane, true);
    Box to = box(s.regions[1], mask, lane, !op.clear);
    check_apart(s, from, to, true, lane);
    Split size = split_at(from, op.dim);
    if (size.outer * size.inner != to.count())
      fail_at(Code::ShapeMismatch, lane,
              fmt::format("a reduction of ({}) along dimension {} into ({})", fmt::join(from.extent, ", "), op.dim,
                          fmt::join(to.extent, ", ")));
    DType type = to.buffer->type;
    with_accumulator(type, [&]<class T>(T) {
      Combiner<T> combiner{op.op, type, op.nan_propagate};
      const T* values = static_cast<const T*>(read_box(from, type, lane));
      T* result = arena_.array<T>(to.count());
      std::fill_n(result, to.count(), combiner.identity());
      for (int64_t o = 0; o < size.outer; ++o)
        for (int64_t a = 0; a < size.along; ++a)
          combiner.rows(result + o * size.inner, values + (o * size.along + a) * size.inner, size.inner);
      if (!op.clear) {
        T* old = static_cast<T*>(read_box(to, type, lane));
        Combiner<T>{joining(op.op), type, op.nan_propagate}.rows(old, result, to.count());
        result = old;
      }
      write_box(to, wide(type, op.op), result);
    });
  });
}

template <>
void Strand::execute(const ir::Scan& op, const Step& s, Mask mask) {
  collective(s, mask, [&](int64_t lane) {
    ArenaScope scope(arena_);
    Box from = box(s.regions[0], mask, lane, true), to = box(s.regions[1], mask, lane, false);
    check_apart(s, from, to, true, lane);
    Split size = split_at(from, op.dim);
    if (from.count() != to.count())
      fail_at(Code::ShapeMismatch, lane,
              fmt::format("a scan of ({}) into ({})", fmt::join(from.extent, ", "), fmt::join(to.extent, ", ")));
    DType type = to.buffer->type;
    with_accumulator(type, [&]<class T>(T) {
      Combiner<T> combiner{op.op, type, false};
      T* values = static_cast<T*>(read_box(from, type, lane));
      for (int64_t o = 0; o < size.outer; ++o)
        for (int64_t a = 1; a < size.along; ++a) {
          int64_t at = op.reverse ? size.along - 1 - a : a, before = op.reverse ? at + 1 : at - 1;
          T* row = values + (o * size.along + at) * size.inner;
          // row = earlier op row, in the order of the scan
          const T* earlier = values + (o * size.along + before) * size.inner;
          for (int64_t i = 0; i < size.inner; ++i) {
            T sum = earlier[i];
            combiner.rows(&sum, row + i, 1);
            row[i] = sum;
          }
        }
      write_box(to, wide(type, op.op), values);
    });
  });
}

template <>
void Strand::execute(const ir::FinalizeReducer& op, const Step& s, Mask mask) {
  check_converged(s, mask, "finalize_reducer");
  meet(s, mask, [&] {
    block_.memory(program_.program->root(op.buffer).index).finalized = true;
    return Value();
  });
}

}  // namespace tilewright::interpreter
