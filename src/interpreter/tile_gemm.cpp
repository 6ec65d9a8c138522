// Gemm: the operands as dense rows of one type, then a loop that adds k in ascending order.
#include "interpreter/gemm_kernel.h"
#include "interpreter/strand.h"

namespace tilewright::interpreter {

namespace {

// The last two extents of a box, which must be all of it.
struct Matrix {
  int64_t rows, columns;
};
Matrix matrix_of(const Box& b) {
  size_t rank = b.extent.size();
  return {rank < 2 ? 1 : b.extent[rank - 2], rank < 1 ? 1 : b.extent[rank - 1]};
}

template <class T>
const T* transposed(const T* in, Matrix m, Arena& arena) {
  T* out = arena.array<T>(m.rows * m.columns);
  for (int64_t i = 0; i < m.rows; ++i)
    for (int64_t j = 0; j < m.columns; ++j) out[j * m.rows + i] = in[i * m.columns + j];
  return out;
}

}  // namespace

void Strand::execute(const ir::Gemm& op, const Step& s, Mask mask) {
  collective(s, mask, [&](int64_t lane) {
    ArenaScope scope(arena_);
    bool clear = s.nodes[0] &&
                 (lane >= 0 ? eval(*s.nodes[0], mask).int_at(lane, frame_.shape.columns) : eval_int(*s.nodes[0], mask));
    Box a = box(s.regions[0], mask, lane, true), b = box(s.regions[1], mask, lane, true);
    Box c = box(s.regions[2], mask, lane, true);
    Matrix am = matrix_of(a), bm = matrix_of(b), cm = matrix_of(c);
    GemmSize size{cm.rows, cm.columns, op.transpose_a ? am.rows : am.columns};
    int64_t inner_b = op.transpose_b ? bm.columns : bm.rows;
    bool fits = size.k == inner_b && (op.transpose_a ? am.columns : am.rows) == size.m &&
                (op.transpose_b ? bm.rows : bm.columns) == size.n && am.rows * am.columns == a.count() &&
                bm.rows * bm.columns == b.count() && cm.rows * cm.columns == c.count();
    if (!fits)
      fail_at(Code::ShapeMismatch, lane,
              fmt::format("a gemm of ({}) and ({}) into ({})", fmt::join(a.extent, ", "), fmt::join(b.extent, ", "),
                          fmt::join(c.extent, ", ")));
    DType type = c.buffer->type;
    // Floats up to 32 bits add up in float and are rounded to the type once; integers wrap.
    DType accumulator = type == f64 ? f64 : type.is_float() ? f32 : type;
    DType operand = accumulator.is_float() ? accumulator : i64;
    auto run = [&]<class T>(T) {
      auto rounded = [&](const Box& source) {  // a gemm reads 10 bits of a tfloat32's mantissa
        auto* values = static_cast<T*>(read_box(source, operand, lane));
        if (s.tf32 || (source.buffer->type == tf32 && operand == f32))
          convert(f32, tf32, Rounding::TowardZero, values, nullptr, values, source.count());
        return values;
      };
      const T *x = rounded(a), *y = rounded(b);
      if (op.transpose_a) x = transposed(x, am, arena_);
      if (op.transpose_b) y = transposed(y, bm, arena_);
      T* sum;
      if (clear) {
        sum = arena_.array<T>(c.count());
        std::memset(sum, 0, static_cast<size_t>(c.count()) * sizeof(T));
      } else {
        sum = static_cast<T*>(read_box(c, accumulator, lane));
      }
      gemm_kernel(size, x, y, sum);
      write_box(c, accumulator == type ? type : accumulator.is_float() ? accumulator : i64, sum);
    };
    if (accumulator == f64)
      run(double{});
    else if (accumulator == f32)
      run(float{});
    else
      run(int64_t{});
    if (s.elements[0]) complete(s, s.elements[0], 0, mask);
  });
}

}  // namespace tilewright::interpreter
