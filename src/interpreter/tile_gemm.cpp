// Gemm: the operands as dense rows of one type, then a loop that adds k in ascending order.
#include "interpreter/gemm_kernel.h"
#include "interpreter/strand.h"
#include "scalar/sparse_group.h"

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

// The positions, four bits each, of the groups of all rows.
std::vector<uint8_t> groups_of(const int64_t* words, int64_t count, int bits) {
  std::vector<uint8_t> out;
  for (int64_t i = 0; i < count; ++i)
    for (int at = 0; at < bits; at += kGroupBits) out.push_back(static_cast<uint8_t>(words[i] >> at & 15));
  return out;
}

// c += a * b, where a (m x k) holds what is kept of each group of a row: what meets no kept element is not looked at.
template <class T>
void sparse_gemm_kernel(GemmSize size, SparseGroup group, const uint8_t* bits, const T* a, const T* b, T* c,
                        Arena& arena) {
  T* met = arena.array<T>(size.k * size.n);
  for (int64_t i = 0; i < size.m; ++i, a += size.k, c += size.n) {
    for (int64_t k = 0; k < size.k; ++k) {
      const int64_t g = k / group.kept;
      const int64_t row = g * group.size + group.position(bits[i * (size.k / group.kept) + g], k % group.kept);
      std::copy_n(b + row * size.n, size.n, met + k * size.n);
    }
    gemm_kernel({1, size.n, size.k}, a, met, c);
  }
}

// A group of zeros may have any bits: they are what lies outside of tensors.
template <class T>
int64_t first_unordered(SparseGroup group, const std::vector<uint8_t>& bits, const T* a) {
  for (size_t g = 0; g < bits.size(); ++g) {
    bool zeros = true;
    for (int64_t j = 0; j < group.kept; ++j) zeros = zeros && a[static_cast<int64_t>(g) * group.kept + j] == 0;
    if (!zeros && !group.is_ordered(bits[g])) return static_cast<int64_t>(g);
  }
  return -1;
}

}  // namespace

template <>
void Strand::execute(const ir::Gemm& op, const Step& s, Mask mask) {
  collective(s, mask, [&](int64_t lane) {
    ArenaScope scope(arena_);
    bool clear = s.nodes[0] &&
                 (lane >= 0 ? eval(*s.nodes[0], mask).int_at(lane, frame_.shape.columns) : eval_int(*s.nodes[0], mask));
    Box a = box(s.regions[0], mask, lane, true), b = box(s.regions[1], mask, lane, true);
    Box c = box(s.regions[2], mask, lane, true);
    for (const Box* operand : {&a, &b}) check_apart(s, *operand, c, false, lane);
    Matrix am = matrix_of(a), bm = matrix_of(b), cm = matrix_of(c);
    GemmSize size{cm.rows, cm.columns, op.transpose_a ? am.rows : am.columns};
    const auto group = op.is_sparse() ? sparse_group(a.buffer->type) : std::nullopt;
    int64_t inner_b = (op.transpose_b ? bm.columns : bm.rows) / (group ? group->size / group->kept : 1);
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
      if (group) {
        Box e = box(s.regions[3], mask, lane, true);
        const Matrix em = matrix_of(e);
        auto* words = static_cast<const int64_t*>(read_box(e, i64, lane));
        if (op.transpose_metadata) words = transposed(words, em, arena_);
        const std::vector<uint8_t> bits = groups_of(words, e.count(), e.buffer->type.bits);
        if (const int64_t g = first_unordered(*group, bits, x); g >= 0)
          fail_at(Code::MetadataUnordered, lane,
                  fmt::format("a sparse gemm: group {} of row {} of '{}' has the metadata 0x{:x}",
                              g % (size.k / group->kept), g * group->kept / size.k, a.buffer->source->name,
                              bits[static_cast<size_t>(g)]),
                  group->size == 4 ? "two bits for each of two kept elements, in ascending order"
                                   : "0x4 keeps the first of two elements, 0xe the second");
        sparse_gemm_kernel(size, *group, bits.data(), x, y, sum, arena_);
      } else {
        gemm_kernel(size, x, y, sum);
      }
      write_box(c, accumulator == type ? type : accumulator.is_float() ? accumulator : i64, sum);
    };
    if (accumulator == f64)
      run(double{});
    else if (accumulator == f32)
      run(float{});
    else
      run(int64_t{});
    if (s.elements[0]) complete(block_, s.elements[0], 0, mask);
  });
}

}  // namespace tilewright::interpreter
